"""The llama server's stream, event by event, and the reply in it read while it is written."""

from __future__ import annotations

import json
import re
from typing import TypeAlias, cast

import msgspec
from msgspec import Struct

from engine.machine.messages import Usage
from engine.ports import StreamItem, TextDelta, ToolCallDelta
from tools.contract import JsonValue


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int = 0


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None


class _ErrorDetail(msgspec.Struct):
    message: str = ""
    type: str = ""


class _PromptProgress(msgspec.Struct):
    total: int = 0
    cache: int = 0
    processed: int = 0


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _ErrorDetail | None = None
    prompt_progress: _PromptProgress | None = None


class ReplyPiece(Struct, frozen=True):
    """Addition of one event of the stream."""

    text: str = ""
    finish: str = ""
    """`stop`, `length` or empty."""
    usage: Usage | None = None
    error: str = ""
    prompt_percent: int | None = None
    """Share of the prompt that has been read, without what the server still knew; None in other events."""


def read_event(payload: bytes) -> ReplyPiece | None:
    """One event; None for the closing mark.

    Raises:
        ValueError: it is no event of this server.
    """
    if payload.strip() == b"[DONE]":
        return None
    event = msgspec.json.decode(payload, type=_Event)
    if event.error is not None:
        return ReplyPiece(error=f"{event.error.type} {event.error.message}".strip())
    choice = event.choices[0] if event.choices else _Choice()
    text = choice.delta.content or "" if choice.delta else ""
    return ReplyPiece(
        text, choice.finish_reason or "", _usage(event.usage), prompt_percent=_prompt_percent(event.prompt_progress)
    )


def _prompt_percent(progress: _PromptProgress | None) -> int | None:
    if progress is None or progress.total <= progress.cache:
        return None
    return max(0, min(100, 100 * (progress.processed - progress.cache) // (progress.total - progress.cache)))


def _usage(counted: _Usage | None) -> Usage | None:
    if counted is None:
        return None
    cached = counted.prompt_tokens_details.cached_tokens if counted.prompt_tokens_details else 0
    return Usage(
        input_tokens=max(0, counted.prompt_tokens - cached),
        output_tokens=counted.completion_tokens,
        cache_read_tokens=cached,
    )


_REPLY = re.compile(r'\s*\{\s*"reply"\s*:\s*"')
_TOOL = re.compile(r'\s*\{\s*"tool"\s*:\s*"([^"\\]+)"')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNICODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_PLAIN = re.compile(r'[^"\\]+')


class SpokenReply(Struct, frozen=True):
    """The model speaks."""

    text: str


class ModelCallsTool(Struct, frozen=True):
    """The model calls a tool, with texts as arguments."""

    tool: str
    arguments: dict[str, str]


class CutCall(Struct, frozen=True):
    """A call that ended in the middle."""


ReplyStep: TypeAlias = SpokenReply | ModelCallsTool | CutCall


class ReplyReader:
    """Feed it the pieces of one reply, in order; the result is the same at every split."""

    def __init__(self) -> None:
        self._written = ""
        self._position: int = 0
        """Index into `_written`: the text before it is decoded."""
        self._in_reply = False
        self._ended = False
        self._tool = ""
        self._text: list[str] = []

    def feed(self, piece: str) -> list[StreamItem]:
        """Feed `piece`; returns the new visible items."""
        self._written += piece
        if self._tool:
            return [ToolCallDelta("", piece)] if piece else []
        if not self._in_reply:
            return self._begin()
        return self._grow()

    def finish(self) -> ReplyStep:
        """Read the complete reply; text that follows no protocol counts as talk."""
        whole = _whole_step(self._written)
        if whole is not None:
            return whole
        if self._tool:
            return CutCall()
        return SpokenReply("".join(self._text) if self._in_reply else self._written.strip())

    def _begin(self) -> list[StreamItem]:
        opening = _REPLY.match(self._written)
        if opening:
            self._in_reply = True
            self._position = opening.end()
            return self._grow()
        call = _TOOL.match(self._written)
        if call:
            self._tool = call.group(1)
            rest = self._written[call.end() :]
            return [ToolCallDelta(self._tool, ""), *([ToolCallDelta("", rest)] if rest else [])]
        return []

    def _grow(self) -> list[StreamItem]:
        text = ""
        while not self._ended and (decoded := self._next()):
            text += decoded
        self._text.append(text)
        return [TextDelta(text)] if text else []

    def _next(self) -> str:
        """The next decoded run or escape; empty when more must come first."""
        plain = _PLAIN.match(self._written, self._position)
        if plain:
            self._position = plain.end()
            return plain.group()
        mark = self._written[self._position : self._position + 2]
        if mark.startswith('"'):
            self._ended = True
            return ""
        if len(mark) < 2:
            return ""
        if mark[1] != "u":
            self._position += 2
            return _ESCAPES.get(mark[1], mark[1])
        return self._unicode()

    def _unicode(self) -> str:
        r"""A `\uXXXX`, or the two that make one character outside the basic plane."""
        first = _UNICODE.match(self._written, self._position)
        if first is None:
            return ""
        code = int(first.group(1), 16)
        if not 0xD800 <= code < 0xDC00:
            self._position = first.end()
            return "\ufffd" if 0xDC00 <= code < 0xE000 else chr(code)
        if len(self._written) < first.end() + 6:
            return ""
        second = _UNICODE.match(self._written, first.end())
        low = int(second.group(1), 16) if second else 0
        if second is None or not 0xDC00 <= low < 0xE000:
            self._position = first.end()
            return "\ufffd"
        self._position = second.end()
        return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))


def _whole_step(written: str) -> SpokenReply | ModelCallsTool | None:
    """The step that `written` is when it is whole and follows the protocol."""
    try:
        parsed = cast("JsonValue", json.loads(written, strict=False))
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    tool, arguments, text = parsed.get("tool"), parsed.get("arguments"), parsed.get("reply")
    if isinstance(tool, str) and isinstance(arguments, dict):
        return ModelCallsTool(tool, {name: str(value) for name, value in arguments.items()})
    return SpokenReply(text) if isinstance(text, str) else None
