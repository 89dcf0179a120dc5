"""Forms and sampling requests of MCP servers, hostile ones too; JSON checked against a schema."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from tools.mcp_form import DONE, LEAVE_OUT, OPEN, AddressForm, BadForm, FieldForm, form_of
from tools.mcp_host.protocol import raw
from tools.mcp_sampling import SampleForm, SampleImage, SampleMessage, SampleRefused, read_sample
from tools.submit_structured import SchemaError, check_schema, problem_of


def form(*required: str, **properties: Any) -> FieldForm:
    made = form_of(
        "form", {"message": "Who?", "requestedSchema": {"properties": properties, "required": list(required)}}
    )
    assert isinstance(made, FieldForm)
    return made


def value(schema: dict[str, Any], *words: str) -> Any:
    """The value that a required field takes from these words, or the reason why it does not."""
    made = form("x", x=schema)
    return made.why_not((words,)) or made.result((words,))["content"]["x"]  # type: ignore[index, call-overload]  # JSON


@pytest.mark.parametrize(
    ("schema", "words", "expected"),
    [
        ({"type": "string"}, ["  Ada "], "Ada"),
        ({"type": "string", "minLength": 3}, ["ab"], "“x” has at least 3 characters."),
        ({"type": "string", "format": "email"}, ["a@b.de"], "a@b.de"),
        ({"type": "string", "format": "email"}, ["a@b"], "“x” is an address such as name@example.com."),
        ({"type": "string", "format": "uri"}, ["https://a.de"], "https://a.de"),
        ({"type": "string", "format": "uri"}, ["a b"], "“x” is an address such as https://example.com."),
        ({"type": "string", "format": "date"}, ["2026-02-29"], "“x” is a date such as 2026-12-31."),
        ({"type": "string", "format": "date"}, ["2028-02-29"], "2028-02-29"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, ["3"], 3),
        ({"type": "integer"}, ["3.5"], "“x” is a whole number."),
        ({"type": "integer", "maximum": 5}, ["6"], "“x” is a whole number up to 5."),
        ({"type": "number", "minimum": 0.5}, ["nan"], "“x” is a number from 0.5."),
        ({"type": "number"}, ["1e400"], "“x” is a number."),
        ({"type": "number"}, ["2.5"], 2.5),
        ({"type": "boolean"}, ["Yes"], True),
        ({"type": "boolean"}, ["no"], False),
        ({"type": "boolean"}, ["perhaps"], "“x” is yes or no."),
        ({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}, ["Green"], "g"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, ["r"], "r"),
        ({"type": "string", "enum": ["r"]}, ["blue"], "“x” is one of the values that are listed."),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 2}, ["c", "a"], ["c", "a"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2}, ["a"], "“x” takes at least 2 values."),
        ({"type": "string"}, [], "“x” needs an answer."),
    ],
)
def test_words_become_values_of_their_kind_or_a_reason(schema: dict[str, Any], words: list[str], expected: Any) -> None:
    assert value(schema, *words) == expected


def test_a_default_counts_where_nothing_is_answered_and_an_optional_field_may_stay_empty() -> None:
    made = form(a={"type": "integer", "default": 7}, b={"type": "string"}, c={"type": "boolean", "default": False})
    assert made.result(((), (), ())) == {"action": "accept", "content": {"a": 7, "c": False}}
    assert made.result(((LEAVE_OUT,), ("x",), ("Yes",)))["content"] == {"b": "x", "c": True}
    first = made.questions[0]
    assert [(one.label, one.description) for one in first.options] == [("7", "default"), (LEAVE_OUT, "")]


def test_the_first_question_has_the_message_and_the_warning() -> None:
    [first, second] = form("a", a={"title": "First"}, b={"description": "More."}).questions
    assert first.question == ("Who?\nGive it no passwords: what you answer is sent to the server.\nFirst")
    assert (second.question, second.header) == ("b: More. Optional.", "b")


@pytest.mark.parametrize(
    "properties",
    [
        {"x": 3},
        {"x": {"type": "object"}},
        {"x": {"type": "array", "items": {"type": "string"}}},
        {"x": {"enum": ["a"] * 2}},
        {"x": {"enum": [1, 2]}},
        {"x": {"enum": [f"{number}" for number in range(51)]}},
        {f"x{number}": {} for number in range(11)},
        {"": {}},
        {"x" * 129: {}},
        [],
    ],
)
def test_a_form_that_cannot_be_shown_is_refused(properties: Any) -> None:
    with pytest.raises(BadForm):
        form_of("form", {"message": "m", "requestedSchema": {"properties": properties}})


def test_texts_of_a_form_are_cleaned_and_cut() -> None:
    spoilt = "\x1b]0;gone\x07" + "w" * 10_000
    made = form_of(
        "form",
        {"message": spoilt, "requestedSchema": {"properties": {"a\x1b[2J": {"title": spoilt, "description": spoilt}}}},
    )
    [asked] = made.questions
    assert "\x1b" not in asked.question
    assert len(asked.question) < 3_000
    assert len(asked.header) <= 20


def test_an_address_is_shown_whole_with_its_host_and_takes_no_own_words() -> None:
    made = form_of("url", {"message": "Sign in", "url": "https://login.example.com/a?b=c"})
    assert isinstance(made, AddressForm)
    [asked] = made.questions
    assert "of login.example.com in your browser:\nhttps://login.example.com/a?b=c" in asked.question
    assert [made.why_not(((words,),)) == "" for words in (OPEN, DONE, "hello")] == [True, True, False]
    assert made.result(((OPEN,),)) == {"action": "accept"}


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.com/", "javascript:alert(1)", "https://good.example@evil.example/", "file:///etc/passwd"),
        *("https://e\u0301xample.com/", "https://a/\\b", "https://a/" + "x" * 2_000, 7),
    ],
)
def test_an_address_that_is_not_what_it_looks_like_is_refused(url: Any) -> None:
    with pytest.raises(BadForm):
        form_of("url", {"message": "m", "url": url})


PIXEL = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/\x1b[31mpng"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def message(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "content": parts[0] if len(parts) == 1 else list(parts)}


def request(*messages: Any, **more: Any) -> Raw:
    return raw({"messages": list(messages) or [message("user", text("hi"))], "maxTokens": 100, **more})


def why_not(params: Raw) -> str:
    with pytest.raises(SampleRefused) as refused:
        read_sample(params)
    assert json.loads(bytes(refused.value.result)) == {"refused": refused.value.sentence, "code": refused.value.code}
    return refused.value.sentence


def test_texts_are_cleaned_images_named_and_messages_of_one_role_joined() -> None:
    read = read_sample(
        request(
            message("user", text("one\x1b]0;title\x07"), PIXEL),
            message("user", text("two\u202e")),
            message("assistant", text("three")),
            message("user", text("four\r\n"), text("")),
            systemPrompt="Be \x1b[2Jbrief.",
            includeContext="allServers",
            temperature=0.5,
            modelPreferences={"hints": [{"name": "big"}]},
        )
    )
    assert read.messages == (
        SampleMessage("user", ("one", SampleImage("image/png", b"hello"), "two")),
        SampleMessage("assistant", ("three",)),
        SampleMessage("user", ("four",)),
    )
    assert read.shown == (
        "System prompt:\nBe brief.\n\nUser:\none\n[image, image/png, 5 bytes]\ntwo\n\nAssistant:\nthree\n\nUser:\nfour"
    )


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (4_096, 4_096), (10**30, 4_096), (1.5, 1)])
def test_the_tokens_of_an_answer_are_bounded(asked: float, given: int) -> None:
    assert read_sample(request(maxTokens=asked)).max_tokens == given


@pytest.mark.parametrize("asked", [0, -1, -(10**30), None, "9", True, 0.5])
def test_an_answer_of_no_tokens_is_refused(asked: object) -> None:
    assert why_not(request(maxTokens=asked)) == "maxTokens of a sampling request must be at least 1."


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (request(tools=[{"name": "x"}]), "Sampling with tools is not supported."),
        (request(message("user", {"type": "tool_result"})), "Sampling with tools is not supported."),
        (request(message("user", {"type": "audio", "data": ""})), "Audio in a sampling request is not supported."),
        (request(message("user", {"type": "odd"})), "The sampling request has a part of an unknown kind."),
        (request(message("user", text("a" * 64_001))), "A sampling request has at most 64,000 characters."),
        (request(systemPrompt="a" * 63_999), "A sampling request has at most 64,000 characters."),
        (request(message("user", text("a\n" * 4_001 + "a"))), "A sampling request has at most 4,000 lines."),
        (request(systemPrompt=7), "The sampling request has a text that is none."),
        (request(message("user", *[PIXEL] * 5)), "A sampling request has at most 4 images."),
        (request(message("user", {**PIXEL, "data": "%"})), "An image of the sampling request is not base64."),
        (
            request(message("assistant", text("a"))),
            "The first and the last message of a sampling request must be the user's.",
        ),
        (request(message("system", text("a"))), "A message of a sampling request has the role user or assistant."),
        (
            request(message("user", text("\x1b[2J"))),
            "A message of a sampling request needs 1 to 100 parts that are not empty.",
        ),
        (request(*[message("user", text("a"))] * 101), "A sampling request needs 1 to 100 messages."),
        (raw({"messages": {}, "maxTokens": 1}), "A sampling request needs 1 to 100 messages."),
        (
            request(stopSequences=["a", ""]),
            "A sampling request has at most 16 stopSequences of 1 to 200 characters.",
        ),
        (raw([]), "The sampling request cannot be read."),
        (Raw(b'{"messages":' + b"[" * 100_000), "The sampling request cannot be read."),
        (Raw(b'{"a":' * 5_000 + b"1" + b"}" * 5_000), "The sampling request cannot be read."),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_sentence(params: Raw, sentence: str) -> None:
    assert why_not(params) == sentence


def test_the_question_has_model_bound_and_price_above_its_options_and_the_request_below() -> None:
    form = SampleForm(read_sample(request()), "anthropic/small", "~2 to read, price unknown")
    (asked,) = form.questions
    assert asked.question == (
        "May a model answer a request of this server?\n"
        "anthropic/small: at most 100 tokens, ~2 to read, price unknown\n"
        "Only the text below goes to the model, and only its answer to the server."
    )
    assert asked.details == "User:\nhi"
    assert [form.why_not(((one,),)) for one in ("Yes, once", "No", "maybe")] == ["", "", "Choose Yes, once or No."]


PERSON: Any = {
    "$defs": {"name": {"type": "string", "minLength": 1}},
    "type": "object",
    "properties": {
        "name": {"$ref": "#/$defs/name"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2, "uniqueItems": True},
        "kind": {"anyOf": [{"const": "x"}, {"type": "null"}]},
        "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "Ada"}, ""),
        ({"name": "Ada", "age": 36.0, "tags": ["a", "b"], "kind": None, "code": "AB"}, ""),
        ({}, "/ needs the field name"),
        ([], "/ must be object"),
        ({"name": ""}, "/name must have at least 1 characters"),
        ({"name": 7}, "/name must be string"),
        ({"name": "Ada", "age": -1}, "/age must be at least 0"),
        ({"name": "Ada", "age": 151}, "/age must be at most 150"),
        ({"name": "Ada", "age": 1.5}, "/age must be integer"),
        ({"name": "Ada", "age": True}, "/age must be integer"),
        ({"name": "Ada", "tags": ["a", "c"]}, "/tags/1 must be one of a, b"),
        ({"name": "Ada", "tags": ["a", "b", "a"]}, "/tags must have at most 2 items"),
        ({"name": "Ada", "tags": ["a", "a"]}, "/tags has an item twice"),
        ({"name": "Ada", "kind": "y"}, "/kind matches none of its 2 forms"),
        ({"name": "Ada", "code": "ab"}, "/code does not match ^[A-Z]{2}$"),
        ({"name": "Ada", "x/y": 1}, "/x~1y is no field of it; the fields are name, age, tags, kind, code"),
    ],
)
def test_a_value_is_held_against_every_keyword(value: Any, problem: str) -> None:
    check_schema(PERSON)
    assert problem_of(PERSON, value) == problem


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, 3, 7),
        ({"allOf": [{"type": "integer"}, {"exclusiveMinimum": 5}]}, 6, 5),
        ({"multipleOf": 3}, 9, 10),
        ({"exclusiveMaximum": 3}, 2, 3),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", 1], ["a", "b"]),
        ({"minProperties": 1, "additionalProperties": {"type": "null"}}, {"a": None}, {"a": 1}),
        ({"type": ["string", "null"]}, None, 1),
        ({"const": 1}, 1, True),
        ({"properties": {"a": False}}, {}, {"a": 1}),
    ],
)
def test_further_keywords_tell_good_values_from_bad_ones(schema: Any, good: Any, bad: Any) -> None:
    check_schema(schema)
    assert problem_of(schema, good) == ""
    assert problem_of(schema, bad) != ""


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a": {"not": {}}}}, "The keyword not at #/properties/a is not supported."),
        ({"type": "text"}, "#/type names no type"),
        ({"$ref": "#/$defs/none"}, "#/$ref leads nowhere"),
        ({"$ref": "https://elsewhere"}, "#/$ref leads nowhere"),
        ({"pattern": "("}, "#/pattern is no regular expression"),
        ({"pattern": "x" * 501}, "#/pattern must be a text"),
        ({"required": "a"}, "#/required must be a list"),
        ({"minimum": "a"}, "#/minimum must be a number"),
        ({"anyOf": []}, "#/anyOf must be a list"),
        ({"properties": []}, "#/properties must be an object"),
        ({"items": 7}, "#/items must be an object"),
        (7, "# must be an object"),
    ],
)
def test_a_schema_that_is_not_understood_is_refused_at_its_place(schema: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(words)):
        check_schema(schema)


def test_depth_and_loops_end_with_a_sentence() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"items": deep}
    with pytest.raises(SchemaError, match="nested too deeply"):
        check_schema(deep)
    loop: Any = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    check_schema(loop)
    assert "too deep" in problem_of(loop, 1)
    double: Any = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 4}}, "$ref": "#/$defs/a"}
    assert "too large" in problem_of(double, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
@settings(max_examples=200)
def test_no_value_makes_a_check_fail_otherwise(value: Any) -> None:
    assert isinstance(problem_of(PERSON, value), str)


@given(JSON)
@settings(max_examples=200)
def test_no_schema_makes_its_check_fail_otherwise(schema: Any) -> None:
    try:
        check_schema(schema)
    except SchemaError as error:
        assert str(error)
