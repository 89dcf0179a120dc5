"""Checks of JSON against a schema: every keyword, its pointer, and schemas and values that cannot be checked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.submit_structured import SchemaError, check_schema, problem_of

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
