"""Fields of a form that an MCP server sends: their schema, read with bounds, and the user's words as values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tools.clean import clean, clean_line
from tools.wording import one_line

LONGEST_WORDS: Final = 500
LONGEST_LABEL: Final = 80
LONGEST_NAME: Final = 128
LARGEST: Final = 10.0**15
MOST_CHOICES: Final = 50
"""Values of one field; a form with more is not shown."""
YES, NO = "Yes", "No"
Value: TypeAlias = str | int | float | bool | list[str]
_EMAIL: Final = re.compile(r"[^\s@]{1,64}@[^\s@]{1,250}\.[^\s@]{1,60}")


class BadForm(ValueError):
    """A form that cannot be shown; the message completes "its form …"."""


class BadValue(ValueError):
    """A value that does not fit its field; the message is a clause."""


class Choice(Struct, frozen=True):
    """One value of a field, with the label that the user sees, a cleaned line."""

    value: str
    label: str


class FormField(Struct, frozen=True):
    """One field; texts are cleaned lines, the name is the server's."""

    name: str
    kind: str
    """string, integer, number or boolean."""
    title: str
    description: str = ""
    required: bool = False
    choices: tuple[Choice, ...] = ()
    multi: bool = False
    format: str = ""
    least: float | None = None
    """Smallest number, length, or count of choices."""
    most: float | None = None
    default: Value | None = None


def read_field(name: str, schema: object, *, required: bool) -> FormField:
    """A field of the form's schema.

    Raises:
        BadForm: it is none that a form may have.
    """
    if not isinstance(schema, dict) or not 0 < len(name) <= LONGEST_NAME:
        raise BadForm("has a field that is none")
    table = cast("dict[str, object]", schema)
    kind, multi = table.get("type", "string"), table.get("type") == "array"
    source = table.get("items") if multi else table
    choices = _choices(cast("dict[str, object]", source)) if isinstance(source, dict) else ()
    if kind not in {"string", "integer", "number", "boolean", "array"} or (multi and not choices):
        raise BadForm(f"has the field {one_line(clean_line(name), LONGEST_LABEL)}, of a kind that Phoenix cannot show")
    keys = ("minItems", "maxItems") if multi else ("minLength", "maxLength") if kind == "string" else _NUMBERS
    made = FormField(
        name,
        "string" if multi else str(kind),
        _line(table.get("title") or name, LONGEST_LABEL),
        _line(table.get("description"), LONGEST_WORDS),
        required,
        choices,
        multi,
        _line(table.get("format"), LONGEST_LABEL),
        _number(table.get(keys[0])),
        _number(table.get(keys[1])),
    )
    return _with_default(made, table.get("default"))


_NUMBERS: Final = ("minimum", "maximum")


def _choices(table: dict[str, object]) -> tuple[Choice, ...]:
    """Choices in any of the three forms: `enum` with `enumNames`, or a list of `const` and `title`."""
    found: list[tuple[object, object]] = []
    values, names = table.get("enum"), table.get("enumNames")
    if isinstance(values, list):
        listed = cast("list[object]", values)
        given = cast("list[object]", names) if isinstance(names, list) else listed
        titles = given if len(given) == len(listed) else listed
        found = list(zip(listed, titles, strict=True))
    for key in ("oneOf", "anyOf"):
        entries = table.get(key)
        if isinstance(entries, list):
            tables = (cast("dict[str, object]", one) for one in cast("list[object]", entries) if isinstance(one, dict))
            found += [(one.get("const"), one.get("title") or one.get("const")) for one in tables]
    if len(found) > MOST_CHOICES:
        raise BadForm(f"has a field with more than {MOST_CHOICES} values")
    made = [Choice(value, _line(title, LONGEST_LABEL)) for value, title in found if isinstance(value, str)]
    labels = [one.label for one in made]
    if len(made) != len(found) or len(set(labels)) != len(labels) or not all(labels):
        raise BadForm("has a field whose values cannot be told apart")
    return tuple(made)


def _with_default(field: FormField, value: object) -> FormField:
    """The field with its default, where that is a value of it."""
    if isinstance(value, bool) and field.kind == "boolean":
        words: Sequence[str] = [YES if value else NO]
    elif isinstance(value, list):
        words = [one for one in cast("list[object]", value) if isinstance(one, str)][:MOST_CHOICES]
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        words = [str(value)]
    else:
        return field
    try:
        default = value_of(field, words)
    except BadValue:
        return field
    return replace(field, default=default)


def value_of(field: FormField, words: Sequence[str]) -> Value:
    """The value for the user's words: labels or values of choices, or a text of the field's kind.

    Raises:
        BadValue: they do not fit.
    """
    if field.choices:
        return _chosen(field, words)
    text = words[0].strip() if words else ""
    match field.kind:
        case "boolean":
            return _flag(text)
        case "integer" | "number":
            return _checked_number(field, text)
        case _:
            return _checked_text(field, text)


def _chosen(field: FormField, words: Sequence[str]) -> Value:
    by_words = {one.value: one.value for one in field.choices} | {one.label: one.value for one in field.choices}
    found = [by_words.get(word.strip()) for word in words]
    values = list(dict.fromkeys(value for value in found if value is not None))
    if None in found or (not field.multi and len(values) != 1):
        raise BadValue("is one of the values that are listed")
    if not field.multi:
        return values[0]
    if (field.least is not None and len(values) < field.least) or (field.most is not None and len(values) > field.most):
        raise BadValue(f"takes {_range(field, 'values')}")
    return values


def _flag(text: str) -> bool:
    if text.lower() in {"yes", "y", "true"}:
        return True
    if text.lower() in {"no", "n", "false"}:
        return False
    raise BadValue("is yes or no")


def _checked_number(field: FormField, text: str) -> int | float:
    wrong = BadValue(f"is a {'whole ' if field.kind == 'integer' else ''}number{_limits(field)}")
    try:
        value = float(text) if len(text) <= LONGEST_LABEL else math.nan
    except ValueError:
        raise wrong from None
    if not math.isfinite(value) or abs(value) > 2**53 or (field.kind == "integer" and not value.is_integer()):
        raise wrong
    if (field.least is not None and value < field.least) or (field.most is not None and value > field.most):
        raise wrong
    return int(value) if field.kind == "integer" or value.is_integer() else value


def _checked_text(field: FormField, text: str) -> str:
    text = clean(text)
    if (field.least is not None and len(text) < field.least) or (field.most is not None and len(text) > field.most):
        raise BadValue(f"has {_range(field, 'characters')}")
    try:
        good = _has_format(field.format, text)
    except ValueError:
        good = False
    if not good:
        raise BadValue(f"is {_FORMATS[field.format]}")
    return text


_FORMATS: Final = {
    "email": "an address such as name@example.com",
    "uri": "an address such as https://example.com",
    "date": "a date such as 2026-12-31",
    "date-time": "a date and time such as 2026-12-31T12:00:00Z",
}


def _has_format(name: str, text: str) -> bool:
    match name:
        case "email":
            return _EMAIL.fullmatch(text) is not None
        case "uri":
            return bool(urlsplit(text).scheme) and " " not in text
        case "date":
            return bool(date.fromisoformat(text))
        case "date-time":
            return "T" in text.upper() and bool(datetime.fromisoformat(text))
        case _:
            return True


def _limits(field: FormField) -> str:
    if field.least is None and field.most is None:
        return ""
    if field.most is None:
        return f" from {field.least:g}"
    return f" up to {field.most:g}" if field.least is None else f" from {field.least:g} to {field.most:g}"


def _range(field: FormField, what: str) -> str:
    if field.most is None:
        return f"at least {field.least or 0:g} {what}"
    return f"at most {field.most:g} {what}" if not field.least else f"{field.least:g} to {field.most:g} {what}"


def asks_for(field: FormField) -> str:
    """Words about the values that fit; empty where any text does."""
    if field.choices or field.kind == "boolean":
        return ""
    if field.kind in {"integer", "number"}:
        return f"a {'whole ' if field.kind == 'integer' else ''}number{_limits(field)}"
    if field.format in _FORMATS:
        return _FORMATS[field.format]
    return _range(field, "characters") if field.least is not None or field.most is not None else ""


def _number(value: object) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST
    return float(cast("float", value)) if good else None


def _line(value: object, most: int) -> str:
    return one_line(clean_line(value[: most * 4]), most) if isinstance(value, str) else ""
