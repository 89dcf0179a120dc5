"""Forms of MCP servers: their fields, hostile ones too, and the values for the user's words."""

from __future__ import annotations

from typing import Any

import pytest

from tools.mcp_form import DONE, LEAVE_OUT, OPEN, AddressForm, BadForm, FieldForm, form_of


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
