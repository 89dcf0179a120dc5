"""Pieces of a reply put together, in all the ways servers send them: calls, reasoning, usage. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct, field

from engine.machine.messages import ThinkingBlock, Usage
from engine.providers.http_transport import MOST_NAME, tokens
from engine.providers.wire import is_carried, parse_object, read_list, value_of
from tools.contract import JsonObject, JsonValue


class WireFunction(msgspec.Struct, gc=False):
    """Name and arguments; the arguments are text, or an object where a server does not follow the API."""

    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw()


class WireCall(msgspec.Struct, gc=False):
    """A piece of a call, or a whole one."""

    index: int | None = None
    id: str | None = None
    function: WireFunction | None = None
    extra_content: msgspec.Raw = msgspec.Raw()
    """Signature of the reasoning behind it (Gemini)."""


class _Call(msgspec.Struct):
    index: int | None
    id: str
    name: str
    arguments: list[str] = msgspec.field(default_factory=list[str])
    extra: JsonValue = None

    @property
    def text(self) -> str:
        return "".join(self.arguments).strip() or "{}"


class CallList:
    """The calls of one reply, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def characters(self) -> int:
        """Number of characters written for calls."""
        return sum(len(call.name) + sum(map(len, call.arguments)) for call in self._calls)

    @property
    def is_open(self) -> bool:
        """True while the arguments of the last call are incomplete."""
        return bool(self._calls) and parse_object(self._calls[-1].text) is None

    def add(self, piece: WireCall) -> tuple[str, str]:
        """Add a piece; returns its new parts: the name, if a call begins with it, and the arguments."""
        function = piece.function or WireFunction()
        name, arguments = (function.name or "")[:MOST_NAME], _text(function.arguments)
        call = self._find_continued(piece, name)
        if call is None:
            extra = value_of(bytes(piece.extra_content))
            self._calls.append(_Call(piece.index, piece.id or "", name, [arguments], extra))
            return name, arguments
        late_name = "" if call.name else name
        call.name = call.name or name
        call.id = call.id or piece.id or ""
        call.extra = call.extra or value_of(bytes(piece.extra_content))
        call.arguments.append(arguments)
        return late_name, arguments

    def drop_cut_call(self) -> bool:
        """Drop the last call if the output limit fell into it."""
        if not self._calls:
            return False
        last = self._calls[-1]
        cut = not any(last.arguments) or parse_object(last.text) is None
        if cut:
            self._calls.pop()
        return cut

    def whole(self) -> list[tuple[str, str, str]]:
        """Id, name and arguments of each call; an empty id is one the server did not give."""
        return [(call.id, call.name, call.text) for call in self._calls]

    def extras(self) -> list[JsonValue]:
        """The `extra_content` of each call, None where it had none; empty where no call had any."""
        extras = [call.extra for call in self._calls]
        return extras if any(extras) else []

    def _find_continued(self, piece: WireCall, name: str) -> _Call | None:
        """The call that `piece` belongs to; None where it begins a new one.

        An index normally decides. Servers that send whole calls repeat index 0, or send none: there a new id, or
        a name after whole arguments, begins the next call.
        """
        if not self._calls:
            return None
        if piece.index is None:
            call = self._calls[-1]
        else:
            found = [call for call in self._calls if call.index == piece.index]
            if not found:
                return None
            call = found[-1]
        if piece.id and call.id and piece.id != call.id:
            return None
        repeats = bool(name and call.name) and (not piece.id or not call.id)
        return None if repeats and (name != call.name or parse_object(call.text) is not None) else call


def _text(arguments: msgspec.Raw) -> str:
    raw = bytes(arguments)
    if not raw or raw == b"null":
        return ""
    try:
        return msgspec.json.decode(raw, type=str) if raw.startswith(b'"') else raw.decode("utf-8")
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return raw.decode("utf-8", "replace")


class WireThinking(Struct):
    """A piece of Claude's reasoning as LiteLLM passes it on beside `reasoning_content`, which has its text, too."""

    thinking: str = ""
    signature: str = ""
    data: str = ""


class Reasoning(Struct, eq=False):
    """Feed it text and signatures in the order in which they come."""

    characters: int = 0
    _done: list[ThinkingBlock] = field(default_factory=list[ThinkingBlock])
    _open: list[str] = field(default_factory=list[str])

    @property
    def signed(self) -> int:
        """Number of blocks with a signature."""
        return len(self._done)

    def add(self, text: str, pieces: Sequence[WireThinking]) -> Iterator[str]:
        """Add the text of one event and the pieces beside it; returns the text missing in `text`.

        Pieces whose text is not that of the event bring signatures alone.
        """
        parted = bool(text) and text == "".join(piece.thinking for piece in pieces)
        self._write("" if parted else text)
        for piece in pieces:
            self._write(piece.thinking if parted else "")
            if piece.data:
                self._done.append(ThinkingBlock("", piece.data, redacted=True))
            elif piece.signature:
                self._done.append(ThinkingBlock("".join(self._open), piece.signature))
                self._open.clear()
            yield piece.signature + piece.data

    def _write(self, text: str) -> None:
        if text:
            self.characters += len(text)
            self._open.append(text)

    def blocks(self, rest: str) -> Iterator[ThinkingBlock]:
        """Every block; `rest` is reasoning that was found in the text."""
        yield from self._done
        if unsigned := "".join(self._open) + rest:
            yield ThinkingBlock(unsigned, "")


def write_back(blocks: Sequence[ThinkingBlock]) -> list[JsonValue]:
    """Signed blocks as a gateway to Claude takes them back."""
    return [
        {"type": "redacted_thinking", "data": block.signature}
        if block.redacted
        else {"type": "thinking", "thinking": block.text, "signature": block.signature}
        for block in blocks
        if block.signature and not is_carried(block)
    ]


_GROWING: Final = ("text", "summary", "data")
"""Fields whose pieces follow one another."""


class ReasoningDetails(Struct, eq=False):
    """Feed it the field of each event."""

    _entries: list[JsonObject] = field(default_factory=list[JsonObject])

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, raw: bytes) -> None:
        """Add the entries of one event: a piece of the newest one of its type and index, or a new one."""
        for piece in read_list(raw):
            if isinstance(piece, dict):
                self._add(piece)

    def _add(self, piece: JsonObject) -> None:
        last = self._entries[-1] if self._entries else None
        if last is None or any(last.get(name) != piece.get(name) for name in ("type", "index")) or _is_ended(last):
            self._entries.append(dict(piece))
            return
        for name, value in piece.items():
            before = last.get(name)
            if name in _GROWING and isinstance(before, str) and isinstance(value, str):
                last[name] = before + value
            elif value is not None:
                last[name] = value

    def whole(self) -> list[JsonValue]:
        """Every entry, in order."""
        return list(self._entries)


def _is_ended(entry: JsonObject) -> bool:
    """True behind a signature, or for encrypted data with an id of its own: neither has a continuation."""
    return bool(entry.get("signature")) or (entry.get("type") == "reasoning.encrypted" and bool(entry.get("id")))


MOST_COST: Final = 10_000.0
"""US dollars of one reply beyond which a statement is an error."""


class WireCached(msgspec.Struct, gc=False):
    """Cached tokens of the prompt as OpenAI reports them, and tokens written to a cache by gateways to Claude."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    """OpenRouter's name for it, and LiteLLM's."""
    cache_creation_tokens: int | None = None
    """Field of an older LiteLLM."""


class WireCostDetails(msgspec.Struct, gc=False):
    """Parts of a cost as OpenRouter reports them."""

    upstream_inference_cost: float | None = None


class ChatUsage(msgspec.Struct, gc=False):
    """Token counts; the prompt includes cached tokens."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: WireCached | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's name for cached tokens."""
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    """Claude's names, where a gateway keeps them."""
    cost: float | None = None
    """Charge of the service in US dollars (OpenRouter)."""
    is_byok: bool | None = None
    """True when the user's own key of another service was used: its charge is `upstream_inference_cost`."""
    cost_details: WireCostDetails | None = None


def count_usage(usage: ChatUsage) -> Usage:
    """The counts with the prompt divided: it includes tokens read from a cache and written to one."""
    details = usage.prompt_tokens_details or WireCached()
    read = tokens(details.cached_tokens or usage.prompt_cache_hit_tokens or usage.cache_read_input_tokens)
    written = tokens(details.cache_write_tokens or details.cache_creation_tokens or usage.cache_creation_input_tokens)
    return Usage(
        input_tokens=tokens((usage.prompt_tokens or 0) - read - written),
        output_tokens=tokens(usage.completion_tokens),
        cache_creation_tokens=written,
        cache_read_tokens=read,
    )


def read_charge(usage: ChatUsage) -> float | None:
    """US dollars that the service charges for the reply by its own statement; None where it makes none."""
    parts = [usage.cost]
    if usage.is_byok and usage.cost_details is not None:
        parts.append(usage.cost_details.upstream_inference_cost)
    told = [part for part in parts if part is not None]
    return sum(told) if told and all(0 <= part <= MOST_COST for part in told) else None
