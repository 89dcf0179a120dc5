"""The tool `submit_structured`: the final answer of a run as JSON, checked against a JSON schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tools.contract import (
    JsonObject,
    JsonValue,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
    ToolSpec,
)

DEEPEST: Final = 100
"""Levels of a schema and of a value, references included."""
MOST_STEPS: Final = 100_000
"""Checks of one value."""
LONGEST_PATTERN: Final = 500
LONGEST_MATCHED: Final = 10_000
"""Characters that a pattern is held against."""
MOST_NAMED: Final = 20
"""Values of an enumeration in a sentence."""
TYPES: Final[dict[str, Callable[[JsonValue], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
    ),
}
_NOTES: Final = """
    title description default examples format deprecated readOnly writeOnly $schema $id $comment $defs definitions
    discriminator
"""
NOTES: Final = frozenset(_NOTES.split())
"""Keywords that check nothing by themselves."""
_SINGLE: Final = frozenset({"items", "additionalProperties"})
_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS: Final = frozenset({"properties", "$defs", "definitions"})
_CHECKS: Final = """
    type enum const required minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
    minItems maxItems uniqueItems minProperties maxProperties $ref
"""
KNOWN: Final = NOTES | _SINGLE | _LISTS | _MAPS | frozenset(_CHECKS.split())


class SchemaError(ValueError):
    """Raised for a schema that cannot be used; one sentence that names the place."""


class _TooMuchError(Exception):
    """Raised when a value takes too many checks."""


def check_schema(schema: JsonValue) -> None:
    """Look whether every part of a schema is understood.

    Raises:
        SchemaError: one is not.
    """
    _check(schema, schema, "#", 0)


def problem_of(schema: JsonObject, value: JsonValue) -> str:
    """The first fault of a value, with its JSON pointer; empty where it matches a schema that `check_schema` took."""
    try:
        return next(_Checker(schema).faults(schema, value, "", 0), "")
    except _TooMuchError:
        return "the value is too large, or too deep, to be checked"


def _check(root: JsonValue, schema: JsonValue, place: str, depth: int) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict) or depth > DEEPEST:
        raise SchemaError(f"{place} is nested too deeply." if depth > DEEPEST else f"{place} must be an object.")
    for keyword, given in schema.items():
        here = f"{place}/{keyword}"
        if keyword not in KNOWN:
            raise SchemaError(f"The keyword {keyword[:60]} at {place} is not supported.")
        for name, inner in _parts(keyword, given, here):
            _check(root, inner, name, depth + 1)
        _check_value(root, keyword, given, here)


def _parts(keyword: str, given: JsonValue, here: str) -> Iterator[tuple[str, JsonValue]]:
    """Schemas inside a keyword, by their place."""
    if keyword in _SINGLE:
        yield here, given
    elif keyword in _LISTS:
        if not isinstance(given, list) or not given:
            raise SchemaError(f"{here} must be a list.")
        yield from ((f"{here}/{number}", one) for number, one in enumerate(given))
    elif keyword in _MAPS:
        if not isinstance(given, dict):
            raise SchemaError(f"{here} must be an object.")
        yield from ((f"{here}/{name}", one) for name, one in given.items())


def _check_value(root: JsonValue, keyword: str, given: JsonValue, here: str) -> None:
    if keyword == "type":
        names = given if isinstance(given, list) else [given]
        if not names or any(name not in TYPES for name in names if isinstance(name, str)):
            raise SchemaError(f"{here} names no type; the types are {', '.join(TYPES)}.")
    elif keyword == "$ref" and _resolve(root, given) is None:
        raise SchemaError(f"{here} leads nowhere in this schema.")
    elif keyword == "pattern":
        if not isinstance(given, str) or len(given) > LONGEST_PATTERN:
            raise SchemaError(f"{here} must be a text of at most {LONGEST_PATTERN} characters.")
        try:
            re.compile(given)
        except re.error as error:
            raise SchemaError(f"{here} is no regular expression ({error}).") from error
    elif keyword in {"required", "enum"} and not isinstance(given, list):
        raise SchemaError(f"{here} must be a list.")
    elif keyword.startswith(("min", "max", "exclusive", "multiple")) and not TYPES["number"](given):
        raise SchemaError(f"{here} must be a number.")


def _resolve(root: JsonValue, reference: JsonValue) -> JsonValue:
    """The part of a schema that a local reference means; None where it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = root
    for part in reference[1:].strip("/").split("/") if reference not in {"#", "#/"} else []:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found if isinstance(found, dict | bool) else None


class _Checker:
    """Checks one value."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._steps = 0

    def faults(self, schema: JsonValue, value: JsonValue, place: str, depth: int) -> Iterator[str]:
        """Faults of a value, each with its pointer."""
        self._steps += 1
        if self._steps > MOST_STEPS or depth > DEEPEST:
            raise _TooMuchError
        if not isinstance(schema, dict):
            if schema is False:
                yield f"{place or '/'} is not allowed"
            return
        if "$ref" in schema:
            yield from self.faults(_resolve(self._root, schema["$ref"]), value, place, depth + 1)
        if said := _wrong_kind(schema, value):
            yield f"{place or '/'} {said}"
            return
        yield from self._check_combined(schema, value, place, depth)
        if isinstance(value, dict):
            yield from self._object(schema, value, place, depth)
        elif isinstance(value, list):
            yield from self._array(schema, value, place, depth)
        elif said := _wrong_size(schema, value):
            yield f"{place or '/'} {said}"

    def _fits(self, schema: JsonValue, value: JsonValue, depth: int) -> bool:
        return next(self.faults(schema, value, "", depth + 1), "") == ""

    def _check_combined(self, schema: JsonObject, value: JsonValue, place: str, depth: int) -> Iterator[str]:
        for one in _list(schema.get("allOf")):
            yield from self.faults(one, value, place, depth + 1)
        choices = _list(schema.get("anyOf"))
        if choices and not any(self._fits(one, value, depth) for one in choices):
            yield f"{place or '/'} matches none of its {len(choices)} forms"
        single = _list(schema.get("oneOf"))
        matching = sum(self._fits(one, value, depth) for one in single)
        if single and matching != 1:
            yield f"{place or '/'} matches {matching} of its {len(single)} forms, not one"

    def _object(self, schema: JsonObject, value: JsonObject, place: str, depth: int) -> Iterator[str]:
        for name in _list(schema.get("required")):
            if isinstance(name, str) and name not in value:
                yield f"{place or '/'} needs the field {name}"
        known = schema.get("properties")
        properties: JsonObject = known if isinstance(known, dict) else {}
        more = schema.get("additionalProperties", True)
        for name, one in value.items():
            here = f"{place}/{name.replace('~', '~0').replace('/', '~1')}"
            if name in properties:
                yield from self.faults(properties[name], one, here, depth + 1)
            elif more is False:
                yield f"{here} is no field of it; the fields are {', '.join(properties)}"
            else:
                yield from self.faults(more, one, here, depth + 1)
        yield from _check_count(schema, len(value), "Properties", "fields", place)

    def _array(self, schema: JsonObject, value: list[JsonValue], place: str, depth: int) -> Iterator[str]:
        first = _list(schema.get("prefixItems"))
        for number, one in enumerate(value):
            inner = first[number] if number < len(first) else schema.get("items", True)
            yield from self.faults(inner, one, f"{place}/{number}", depth + 1)
        yield from _check_count(schema, len(value), "Items", "items", place)
        if schema.get("uniqueItems") is True and len({repr(one) for one in value}) < len(value):
            yield f"{place or '/'} has an item twice"


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _wrong_kind(schema: JsonObject, value: JsonValue) -> str:
    """Difference from type, enum or const; empty without one."""
    given = schema.get("type")
    names = [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]
    if names and not any(TYPES[name](value) for name in names):
        return f"must be {' or '.join(names)}"
    if "enum" in schema and not any(_same(one, value) for one in _list(schema["enum"])):
        return f"must be one of {', '.join(map(str, _list(schema['enum'])[:MOST_NAMED]))}"
    if "const" in schema and not _same(schema["const"], value):
        return f"must be {schema['const']}"
    return ""


def _same(one: JsonValue, other: JsonValue) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _wrong_size(schema: JsonObject, value: JsonValue) -> str:
    """Fault of a text or number; empty without one."""
    if isinstance(value, str):
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not re.search(pattern, value[:LONGEST_MATCHED]):
            return f"does not match {pattern}"
        return next(_check_count(schema, len(value), "Length", "characters", ""), "").removeprefix("/ ")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    least, most = _number(schema.get("minimum")), _number(schema.get("maximum"))
    above, below = _number(schema.get("exclusiveMinimum")), _number(schema.get("exclusiveMaximum"))
    step = _number(schema.get("multipleOf"))
    if least is not None and value < least:
        return f"must be at least {least:g}"
    if most is not None and value > most:
        return f"must be at most {most:g}"
    if above is not None and value <= above:
        return f"must be more than {above:g}"
    if below is not None and value >= below:
        return f"must be less than {below:g}"
    return f"must be a multiple of {step:g}" if step and value % step else ""


def _check_count(schema: JsonObject, count: int, of: str, words: str, place: str) -> Iterator[str]:
    least, most = _number(schema.get(f"min{of}")), _number(schema.get(f"max{of}"))
    if least is not None and count < least:
        yield f"{place or '/'} must have at least {least:g} {words}"
    if most is not None and count > most:
        yield f"{place or '/'} must have at most {most:g} {words}"


def _number(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


NAME: Final = "submit_structured"
LARGEST: Final = 262_144
"""Characters of a schema."""
TAKEN: Final = "The answer was taken. End now; say nothing more."
DESCRIPTION: Final = (
    "Hand in your final answer in the shape that was asked for. Call it once, when the work is done, as your last act."
)
REMINDER: Final = (
    f"[You have not called {NAME} yet. Call it now with your final answer; an answer in words alone does not count.]"
)


def usable_schema(schema: JsonValue) -> JsonObject:
    """A schema as the input of the tool.

    Raises:
        SchemaError: it is not understood, or does not describe an object.
    """
    if not isinstance(schema, dict):
        raise SchemaError("The schema must be a JSON object.")
    check_schema(schema)
    if "type" in schema and schema["type"] != "object":
        raise SchemaError('The schema must describe an object: {"type": "object", …}.')
    return {**schema, "type": "object"}


class SubmitStructured:
    """Checks the answer and keeps it."""

    def __init__(self, schema: JsonObject, told: str = TAKEN) -> None:
        self._schema = schema
        self._told = told
        """Result that the model reads."""
        self.answer: JsonObject | None = None
        """The answer that was handed in last; None while there is none."""
        self.spec = ToolSpec(NAME, DESCRIPTION, schema, ToolClass.READ)

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        """Check the answer.

        Raises:
            ToolInputError: it has another shape; the text names the place.
        """
        del working_dir
        if problem := problem_of(self._schema, args):
            raise ToolInputError(f"the answer does not match its schema: {problem}. Correct it and call {NAME} again.")
        return ToolRequest("the final answer")

    async def run(self, args: JsonObject, context: ToolContext) -> ToolOutput:
        """Keep the answer."""
        del context
        self.answer = args
        return ToolOutput(self._told)
