"""Requests of MCP servers for an answer of a model: read, cleaned and bounded, and as a question to the user."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Raw, Struct

from tools.clean import clean, clean_line
from tools.contract import JsonObject
from tools.displays import Answers, AskedOption, AskedQuestion
from tools.mcp_host.protocol import SampleRefusal, raw
from tools.wording import pluralize

MOST_TOKENS: Final = 4_096
"""Tokens of an answer, whatever a server asks for."""
MOST_MESSAGES: Final = 100
LONGEST_TEXT: Final = 64_000
MOST_LINES: Final = 4_000
"""Characters and lines of all texts of a request: a person is to read them."""
MOST_IMAGES: Final = 4
LONGEST_TYPE: Final = 60
MOST_STOPS: Final = 16
LONGEST_STOP: Final = 200
INVALID: Final = -32602
INTERNAL: Final = -32603
DECLINED: Final = -1
"""JSON-RPC codes; the last one is for a no of the user, from the specification of sampling."""
NOT_CALLED: Final = "Sampling requests are answered only while a tool call of a conversation runs."
YES: Final = "Yes, once"
NO: Final = "No"
ROLES: Final = {"user": "User", "assistant": "Assistant"}

SampleRole: TypeAlias = Literal["user", "assistant"]


class SampleRefused(Exception):
    """A request that is not answered: a sentence for the server, with a JSON-RPC code."""

    def __init__(self, sentence: str, code: int = INVALID, why: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.code = sentence, code
        self.why = why
        """Cause for the log alone: it may name settings of the user."""

    @property
    def result(self) -> Raw:
        """The answer to the helper."""
        return raw(SampleRefusal(self.sentence, self.code))


class SampleImage(Struct, frozen=True):
    """An image; `media_type` is the server's claim."""

    media_type: str
    data: bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.media_type}, {len(self.data)} bytes)"


class SampleMessage(Struct, frozen=True):
    """A message with cleaned texts."""

    role: SampleRole
    parts: tuple[str | SampleImage, ...]


class SampleRequest(Struct, frozen=True):
    """A request that can be answered; roles alternate, beginning and ending with the user."""

    messages: tuple[SampleMessage, ...]
    max_tokens: int
    system: str = ""
    stops: tuple[str, ...] = ()
    """Texts at which the answer ends."""

    @property
    def shown(self) -> str:
        """All of it as text; images are named."""
        parts = [("System prompt", self.system)] if self.system else []
        parts += [(ROLES[one.role], "\n".join(map(_show_part, one.parts))) for one in self.messages]
        return "\n\n".join(f"{heading}:\n{text}" for heading, text in parts)


class SampleAnswer(Struct, frozen=True):
    """Answer of a model; `stop` is named as in MCP."""

    text: str
    model: str
    stop: str = "endTurn"

    @property
    def result(self) -> Raw:
        """The answer to the helper."""
        content = {"type": "text", "text": self.text}
        return raw({"role": "assistant", "content": content, "model": self.model, "stopReason": self.stop})


class SampleForm(Struct, frozen=True):
    """The question whether a model may answer; implements `tools.mcp_form.ServerForm`."""

    request: SampleRequest
    model: str
    """Reference of the model that would answer."""
    cost: str
    """Bound of the price, in words."""

    @property
    def questions(self) -> tuple[AskedQuestion, ...]:
        """One question, with all of the request below its options."""
        tokens = pluralize(self.request.max_tokens, "token")
        text = (
            f"May a model answer a request of this server?\n{self.model}: at most {tokens}, {self.cost}\n"
            "Only the text below goes to the model, and only its answer to the server."
        )
        options = (AskedOption(YES, "answer this request"), AskedOption(NO))
        return (AskedQuestion(text, "Model", options, only_options=True, details=self.request.shown),)

    def why_not(self, answers: Answers) -> str:
        """Refuse own words: they would be no answer of a model."""
        return "" if answers in {((YES,),), ((NO,),)} else f"Choose {YES} or {NO}."


def read_sample(params: Raw) -> SampleRequest:
    """A request as the helper passes it on.

    Raises:
        SampleRefused: it cannot be answered.
    """
    try:
        found: JsonObject = msgspec.json.decode(params, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise SampleRefused("The sampling request cannot be read.") from None
    if found.get("tools"):
        raise SampleRefused("Sampling with tools is not supported.")
    wanted = found.get("maxTokens")
    if isinstance(wanted, bool) or not isinstance(wanted, int | float) or not wanted >= 1:
        raise SampleRefused("maxTokens of a sampling request must be at least 1.")
    reader = _Reader()
    system = reader.text(found.get("systemPrompt") or "")
    messages = reader.messages(found.get("messages"))
    value = found.get("stopSequences")
    given = cast("list[object]", value) if isinstance(value, list) else []
    if len(given) > MOST_STOPS or not all(isinstance(one, str) and 0 < len(one) <= LONGEST_STOP for one in given):
        raise SampleRefused(
            f"A sampling request has at most {MOST_STOPS} stopSequences of 1 to {LONGEST_STOP} characters."
        )
    return SampleRequest(messages, int(min(wanted, MOST_TOKENS)), system, tuple(cast("Sequence[str]", given)))


class _Reader:
    """Reads messages within the bounds that hold for all of them."""

    def __init__(self) -> None:
        self._room, self._lines, self._images = LONGEST_TEXT, MOST_LINES, 0

    def text(self, value: object) -> str:
        """A cleaned text."""
        if not isinstance(value, str):
            raise SampleRefused("The sampling request has a text that is none.")
        self._room -= len(value)
        if self._room < 0:
            raise SampleRefused(f"A sampling request has at most {LONGEST_TEXT:,} characters.")
        text = clean(value).strip()
        self._lines -= text.count("\n") + 1
        if self._lines < 0:
            raise SampleRefused(f"A sampling request has at most {MOST_LINES:,} lines.")
        return text

    def messages(self, value: object) -> tuple[SampleMessage, ...]:
        """The messages; those of one role behind each other become one."""
        given = cast("list[object]", value) if isinstance(value, list) else []
        if not 0 < len(given) <= MOST_MESSAGES:
            raise SampleRefused(f"A sampling request needs 1 to {MOST_MESSAGES} messages.")
        found: list[SampleMessage] = []
        for one in map(self._message, given):
            if found and found[-1].role == one.role:
                found[-1] = SampleMessage(one.role, (*found[-1].parts, *one.parts))
            else:
                found.append(one)
        if found[0].role != "user" or found[-1].role != "user":
            raise SampleRefused("The first and the last message of a sampling request must be the user's.")
        return tuple(found)

    def _message(self, value: object) -> SampleMessage:
        table = cast("dict[str, object]", value) if isinstance(value, dict) else {}
        role, content = table.get("role"), table.get("content")
        if role not in ROLES:
            raise SampleRefused("A message of a sampling request has the role user or assistant.")
        parts = cast("list[object]", content) if isinstance(content, list) else [content]
        read = tuple(part for one in parts[:MOST_MESSAGES] if (part := self._part(one)) != "")
        if not read or len(parts) > MOST_MESSAGES:
            raise SampleRefused(f"A message of a sampling request needs 1 to {MOST_MESSAGES} parts that are not empty.")
        return SampleMessage(cast("SampleRole", role), read)

    def _part(self, value: object) -> str | SampleImage:
        table = cast("dict[str, object]", value) if isinstance(value, dict) else {}
        match table.get("type"):
            case "text":
                return self.text(table.get("text"))
            case "image":
                return self._image(table)
            case "audio":
                raise SampleRefused("Audio in a sampling request is not supported.")
            case "tool_use" | "tool_result":
                raise SampleRefused("Sampling with tools is not supported.")
            case _:
                raise SampleRefused("The sampling request has a part of an unknown kind.")

    def _image(self, table: dict[str, object]) -> SampleImage:
        self._images += 1
        if self._images > MOST_IMAGES:
            raise SampleRefused(f"A sampling request has at most {MOST_IMAGES} images.")
        try:
            data = base64.b64decode(str(table.get("data", "")), validate=True)
        except (binascii.Error, ValueError):
            raise SampleRefused("An image of the sampling request is not base64.") from None
        return SampleImage(clean_line(str(table.get("mimeType", "")))[:LONGEST_TYPE], data)


def _show_part(part: str | SampleImage) -> str:
    if isinstance(part, str):
        return part
    return f"[image, {part.media_type or 'of an unknown type'}, {pluralize(len(part.data), 'byte')}]"
