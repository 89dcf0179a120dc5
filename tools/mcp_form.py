"""Forms of MCP servers: their fields read and bounded, asked as questions, and their answers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tools.clean import clean, clean_line
from tools.contract import JsonObject, JsonValue
from tools.displays import Answers, AskedOption, AskedQuestion
from tools.mcp_host.protocol import host_of, is_plain_address
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
        return _choose(field, words)
    text = words[0].strip() if words else ""
    match field.kind:
        case "boolean":
            if text.lower() in {"yes", "y", "true"}:
                return True
            if text.lower() in {"no", "n", "false"}:
                return False
            raise BadValue("is yes or no")
        case "integer" | "number":
            return _check_number(field, text)
        case _:
            return _check_text(field, text)


def _choose(field: FormField, words: Sequence[str]) -> Value:
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


def _check_number(field: FormField, text: str) -> int | float:
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


def _check_text(field: FormField, text: str) -> str:
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


MOST_FIELDS: Final = 10
MOST_LISTED: Final = 8
"""Choices that are rows; the others of a field are named in its question and typed."""
LONGEST_MESSAGE: Final = 2_000
LONGEST_URL: Final = 2_000
HEADER: Final = 20
LEAVE_OUT: Final = "Leave it out"
AGREE: Final = "Agree"
OPEN: Final = "Open it"
DONE: Final = "I opened it myself"
UNTRUSTED: Final = "Give it no passwords: what you answer is sent to the server."


class FormAnswer(Struct, frozen=True):
    """The user's answer to a question of a server."""

    answers: Answers | None = None
    """Answers that fit; None: the user said no."""
    is_left: bool = False
    """True where the question was put away without a no."""


LEFT: Final = FormAnswer(is_left=True)


class ServerForm(Protocol):
    """A question of a server as the user sees it."""

    @property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """The questions, in order."""
        ...

    def why_not(self, answers: Answers) -> str:
        """Reason why these answers do not do, as a sentence; empty where they do."""
        ...


class FieldForm(Struct, frozen=True):
    """A form of fields; one without any asks for a yes."""

    message: str
    fields: tuple[FormField, ...]

    @property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """A question for each field; the first one begins with the server's message."""
        if not self.fields:
            asked = f"{self.message}\n{UNTRUSTED}"
            return (AskedQuestion(asked, "Agree", (AskedOption(AGREE),), only_options=True),)
        head = f"{self.message}\n{UNTRUSTED}\n"
        return tuple(_question(field, "" if at else head) for at, field in enumerate(self.fields))

    def why_not(self, answers: Answers) -> str:
        """Name the first field that has no value, or one that does not fit."""
        if not self.fields:
            return "" if answers == ((AGREE,),) else f"Choose {AGREE}, or decline."
        for field, words in zip(self.fields, answers, strict=True):
            try:
                _value(field, words)
            except BadValue as error:
                return f"“{field.title}” {error}."
        return ""

    def result(self, answers: Answers) -> JsonObject:
        """The values by the names of their fields."""
        values = {field.name: _value(field, words) for field, words in zip(self.fields, answers, strict=False)}
        content = {name: cast("JsonValue", value) for name, value in values.items() if value is not None}
        return {"action": "accept", "content": content}


class AddressForm(Struct, frozen=True):
    """An address that the user is asked to open."""

    message: str
    url: str

    @property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """One question, with the address whole and its host."""
        text = f"{self.message}\nIt asks you to open this address of {host_of(self.url)} in your browser:\n{self.url}"
        options = (AskedOption(OPEN, "in your browser"), AskedOption(DONE, "and the server may go on"))
        return (AskedQuestion(text, "Open", options, only_options=True),)

    def why_not(self, answers: Answers) -> str:
        """Refuse own words: nothing of them would reach the server."""
        return "" if answers in {((OPEN,),), ((DONE,),)} else f"Choose {OPEN} or {DONE}, or decline."

    def result(self, answers: Answers) -> JsonObject:
        """The user agreed."""
        return {"action": "accept"}


def form_of(kind: str, params: JsonObject) -> FieldForm | AddressForm:
    """The form for a question of kind `form` or `url`.

    Raises:
        BadForm: it cannot be shown.
    """
    message = params.get("message")
    text = clean(message[: LONGEST_MESSAGE * 2])[:LONGEST_MESSAGE].strip() if isinstance(message, str) else ""
    if kind == "url":
        url = params.get("url")
        if not isinstance(url, str) or len(url) > LONGEST_URL or not is_plain_address(url):
            raise BadForm("names an address that no browser should open")
        return AddressForm(text, url)
    schema = params.get("requestedSchema")
    properties = schema.get("properties", {}) if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict):
        raise BadForm("has no fields")
    if len(properties) > MOST_FIELDS:
        raise BadForm(f"has more than {MOST_FIELDS} fields")
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    fields = [read_field(name, one, required=name in required) for name, one in properties.items()]
    return FieldForm(text, tuple(fields))


def _value(field: FormField, words: Sequence[str]) -> Value | None:
    """The value of a field; None where it is left out."""
    given = [word for word in words if word != LEAVE_OUT]
    if given:
        return value_of(field, given)
    if LEAVE_OUT not in words and field.default is not None:
        return field.default
    if field.required:
        raise BadValue("needs an answer")
    return None


def _question(field: FormField, head: str) -> AskedQuestion:
    asks = asks_for(field)
    parts = [field.description, f"Expected: {asks}." if asks else "", "" if field.required else "Optional."]
    more = [one.label for one in field.choices[MOST_LISTED:]]
    parts.append(f"Also: {', '.join(more)}; type one of them." if more else "")
    text = f"{head}{field.title}: {' '.join(filter(None, parts))}".rstrip(": ")
    return AskedQuestion(text, one_line(field.title, HEADER), tuple(_options(field)), field.multi)


def _options(field: FormField) -> Sequence[AskedOption]:
    default = field.default
    if field.choices:
        chosen = default if isinstance(default, list) else [default]
        options = [
            AskedOption(one.label, "default" if one.value in chosen else "") for one in field.choices[:MOST_LISTED]
        ]
    elif field.kind == "boolean":
        words = {YES: True, NO: False}
        options = [AskedOption(word, "default" if default is value else "") for word, value in words.items()]
    else:
        options = [AskedOption(f"{default:g}" if isinstance(default, float) else str(default), "default")]
        options = options if default is not None else []
    return options if field.required else [*options, AskedOption(LEAVE_OUT)]
