"""Questions of an MCP server to the user: a form, or an address to open, as questions with numbered answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, cast

from msgspec import Struct

from tools.asked_questions import Answers, AskedOption, AskedQuestion
from tools.clean import clean
from tools.contract import JsonObject, JsonValue
from tools.mcp_form_fields import (
    NO,
    YES,
    BadForm,
    BadValue,
    FormField,
    Value,
    asks_for,
    read_field,
    value_of,
)
from tools.mcp_host.protocol import host_of, is_plain_address
from tools.wording import one_line

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
