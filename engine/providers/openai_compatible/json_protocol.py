"""Tools for models whose server has none: every answer is one JSON object (docs/decisions/local-model.md). Pure.

`{"tool": NAME, "arguments": {...}}` acts, `{"reply": TEXT}` talks. With a schema in `response_format` a server
enforces it; without one the prompt alone asks for it, and text that is no such object counts as a reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto

from msgspec import Struct, field

from engine.machine.messages import ToolUseBlock
from engine.ports import StreamItem, TextDelta, ToolCallDelta
from engine.providers.wire import encode_json, parse_object, tool_input
from tools.contract import JsonObject, JsonValue, ToolSpec

EXAMPLES: tuple[tuple[str, str, JsonObject], ...] = (
    ("what is in notes.txt", "read_file", {"path": "notes.txt"}),
    ("who am I logged in as", "bash", {"command": "whoami"}),
)
"""One of each kind teaches more than the description does; only those of tools on offer are shown."""
REPLY_EXAMPLE = ("good morning", "Good morning! What shall we work on?")
LONGEST_HEAD = 4_000
"""Characters in which the protocol must begin; a longer beginning is text."""
_REPLY = re.compile(r'\s*\{\s*"reply"\s*:\s*"')
_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*"([^"\\]+)"\s*,')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class JsonKind(Enum):
    """Kinds of answers, known while they arrive."""

    UNKNOWN = auto()
    REPLY = auto()
    CALL = auto()
    PLAIN = auto()
    """The model answers without JSON."""
    OVER = auto()
    """The reply's closing quote has come; the rest is not shown."""


def prompt(system: Sequence[str], tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """The system prompt with the protocol and the tools behind it."""
    lines = [
        'Answer with exactly one JSON object: to act, {"tool": NAME, "arguments": {...}}; '
        'just to talk, {"reply": "text"}. Tools:',
        *(f"- {tool.name}({', '.join(_parameters(tool))}): {tool.description}" for tool in tools),
        "Examples:",
        *_examples({tool.name for tool in tools}),
    ]
    return (*system, "\n".join(lines))


def response_format(tools: Sequence[ToolSpec]) -> JsonObject:
    """The schema that a server holds the model to."""
    choices: list[JsonValue] = [
        _object({"tool": {"const": tool.name}, "arguments": {**tool.input_schema, "additionalProperties": False}})
        for tool in tools
    ]
    choices.append(_object({"reply": {"type": "string"}}))
    return {"type": "json_schema", "json_schema": {"name": "step", "schema": {"anyOf": choices}}}


def answer(text: str, calls: Sequence[ToolUseBlock]) -> str:
    """An earlier answer in the form of the protocol: the call if there was one, else the text."""
    if calls:
        return "\n".join(_write_json({"tool": call.name, "arguments": tool_input(call)}) for call in calls)
    return _write_json({"reply": text})


def result(tool: str, text: str, is_error: bool) -> str:
    """Result of a tool as text in the user's message."""
    return f"{tool} {'failed' if is_error else 'returned'}:\n{text}"


class JsonStep(Struct, frozen=True):
    """The complete answer: calls, or a reply. `calls` are (id, name, arguments); the id is always empty."""

    reply: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    truncated: bool = False
    """A call that the output limit cut off; it is not among `calls`."""


class StepReader:
    """Reads one answer of the protocol while it is being written, so that its text can be shown as it comes."""

    def __init__(self) -> None:
        self._text = ""
        self._kind: JsonKind = JsonKind.UNKNOWN
        self._at = 0
        """Number of characters already shown."""
        self._shown: list[str] = []

    def feed(self, piece: str) -> Iterator[StreamItem]:
        """Feed `piece`; yields the visible additions."""
        self._text += piece
        if self._kind is JsonKind.UNKNOWN:
            yield from self._begin()
        elif self._kind is JsonKind.CALL:
            yield ToolCallDelta("", piece)
        if self._kind is JsonKind.REPLY:
            yield from self._show(self._unescape_whole())
        elif self._kind is JsonKind.PLAIN:
            fresh, self._at = self._text[self._at :], len(self._text)
            yield from self._show(fresh)

    def finish(self, *, cut: bool) -> JsonStep:
        """Read the complete answer; `cut` says that the output limit ended it."""
        match parse_object(_without_fence(self._text)):
            case {"tool": str(tool), **rest}:
                arguments = rest.get("arguments", {})
                written = _write_json(arguments) if isinstance(arguments, dict) else str(arguments)
                return JsonStep(calls=[("", tool, written)])
            case {"reply": str(reply)}:
                return JsonStep(reply)
            case _ if cut and self._kind is JsonKind.CALL:
                return JsonStep(truncated=True)
            case _:
                return JsonStep("".join(self._shown) or self._text)

    def _begin(self) -> Iterator[StreamItem]:
        """Determine the kind of this answer, as soon as its first characters allow it."""
        head = self._text.lstrip()
        if reply := _REPLY.match(self._text):
            self._kind, self._at = JsonKind.REPLY, reply.end()
        elif call := _CALL.match(self._text):
            self._kind = JsonKind.CALL
            yield ToolCallDelta(call[1], self._text[call.end() :])
        elif (head and head[0] not in "{`") or len(self._text) > LONGEST_HEAD:
            self._kind = JsonKind.PLAIN

    def _show(self, text: str) -> Iterator[StreamItem]:
        if text:
            self._shown.append(text)
            yield TextDelta(text)

    def _unescape_whole(self) -> str:
        """The characters that are whole: an escape waits for its last digit, a high surrogate for its low one."""
        shown: list[str] = []
        text, at = self._text, self._at
        while at < len(text):
            if text[at] == '"':
                self._kind = JsonKind.OVER
                break
            if text[at] != "\\":
                places = [place for place in (text.find('"', at), text.find("\\", at)) if place >= 0]
                stop = min(places, default=len(text))
                shown.append(text[at:stop])
                at = stop
                continue
            length = _escape_length(text, at)
            if length == 0 or at + length > len(text):
                break
            shown.append(_unescape(text[at : at + length]))
            at += length
        self._at = at
        return "".join(shown)


def _escape_length(text: str, at: int) -> int:
    r"""Characters of the escape at `at`; 0 while it is incomplete. A high surrogate needs the next \uXXXX too."""
    if at + 1 >= len(text):
        return 0
    if text[at + 1] != "u":
        return 2
    is_high = text[at + 2 : at + 3] in {"d", "D"} and text[at + 3 : at + 4] in set("89abAB")
    return 12 if is_high and len(text) >= at + 6 else 6


def _unescape(escape: str) -> str:
    if escape[1] != "u":
        return _ESCAPES.get(escape[1], escape[1])
    parsed = parse_object('{"c":"' + escape + '"}')
    return str(parsed["c"]) if parsed else "\ufffd"


def _parameters(tool: ToolSpec) -> list[str]:
    properties = tool.input_schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _examples(offered: set[str]) -> list[str]:
    lines = [
        f"user: {said} -> {_write_json({'tool': tool, 'arguments': arguments})}"
        for said, tool, arguments in EXAMPLES
        if tool in offered
    ]
    said, reply = REPLY_EXAMPLE
    return [*lines, f"user: {said} -> {_write_json({'reply': reply})}"]


def _object(properties: JsonObject) -> JsonObject:
    required: list[JsonValue] = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _write_json(value: JsonObject) -> str:
    return encode_json(value).decode("utf-8")


def _without_fence(text: str) -> str:
    """The text inside a ```json fence, for models that cannot help writing one."""
    inner = text.strip()
    if inner.startswith("```") and inner.endswith("```"):
        return inner[3:-3].removeprefix("json").strip()
    return inner
