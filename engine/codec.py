"""Values of a conversation as JSON text and back: blocks, states, displays, usage and totals.

A class that stands in a union carries its short name under `type`; every other class is known from its field.
Decoding checks each field against its annotation, so what comes back is what the annotations say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeGuard, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from engine.machine.messages import (
    Block,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResult,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from engine.machine.states import STATE_NAMES, CompactingContext, Requesting, RetryWait, Routing, State
from engine.records import MOST_EARLIER, EarlierView, Omission
from engine.totals import Totals
from tools.contract import AgentsDisplay, DiffDisplay, Display, ImageDisplay, PlainDisplay, TerminalDisplay

Decoder: TypeAlias = Callable[[object], object]

NAMES: dict[type, str] = {
    TextBlock: "text",
    ImageBlock: "image",
    ThinkingBlock: "thinking",
    ToolUseBlock: "tool_use",
    ToolResultBlock: "tool_result",
    Requesting: "requesting",
    RetryWait: "retry_wait",
    Routing: "routing",
    CompactingContext: "compacting",
    PlainDisplay: "plain",
    TerminalDisplay: "terminal",
    DiffDisplay: "diff",
    ImageDisplay: "image",
    AgentsDisplay: "agents",
    **STATE_NAMES,
}
"""The `type` of every class that is part of a union; unique within each union."""

UNREADABLE = "(Phoenix cannot read this part) "
LONGEST_UNREADABLE = 4_000
"""Characters that are kept of it."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class MessageFlags(Struct, frozen=True):
    """Rare flags of messages."""

    cut: str = ""


class CodecError(ValueError):
    """This text is no such value; the message says what is wrong."""


def storable(text: str) -> str:
    """Text as a database and a JSON document can hold it: no NUL, lone surrogates as U+FFFD (SPEC T-GRD)."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(lambda match: "" if match[0] == "\x00" else "\ufffd", text)


def encode_blocks(blocks: Sequence[Block]) -> str:
    """The column `messages.content_json`."""
    return _encode(tuple(blocks))


def decode_blocks(text: str) -> tuple[Block, ...]:
    """Decode the output of `encode_blocks`. Raises CodecError."""
    return cast("tuple[Block, ...]", _decode(text, tuple[Block, ...]))


def readable_blocks(text: str) -> tuple[tuple[Block, ...], str]:
    """The blocks of a message, and the first problem, empty without one; what is no block is kept as text.

    For what stands in the database: another version may have written it, or a disk may have damaged it.
    """
    try:
        return decode_blocks(text), ""
    except CodecError as error:
        problem = str(error)
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raw = text
    parts = cast("list[object]", raw) if isinstance(raw, list) else [raw]
    return tuple(map(_readable_block, parts)), problem


def _readable_block(raw: object) -> Block:
    try:
        return cast("Block", _decoder(Block)(raw))
    except (CodecError, RecursionError):
        told: object = raw.get("text", raw) if _is_object(raw) else raw
        words = told if isinstance(told, str) else msgspec.json.encode(told).decode()
        return TextBlock(UNREADABLE + storable(words[:LONGEST_UNREADABLE]))


def encode_state(state: State) -> str:
    """The column `conversations.state_json`."""
    return _encode(state)


def decode_state(text: str) -> State:
    """Decode the output of `encode_state`. Raises CodecError."""
    return cast("State", _decode(text, State))


def encode_display(display: Display) -> str:
    """The `display_json` of a tool result."""
    return _encode(display)


def decode_display(text: str) -> Display | None:
    """Decode the output of `encode_display`; None for empty text. Raises CodecError."""
    return cast("Display", _decode(text, Display)) if text else None


def display_text(result: ToolResult) -> str:
    """The `display_json` of a settled call; that of sub-agents is made of how they ended."""
    return encode_display(AgentsDisplay(result.agents)) if result.agents else result.display_json


def encode_usage(usage: Usage) -> str:
    """The columns that hold the usage of one reply."""
    return _encode(usage)


def decode_usage(text: str) -> Usage:
    """Decode the output of `encode_usage`. Raises CodecError."""
    return cast("Usage", _decode(text, Usage))


def encode_cut(cut: str) -> str | None:
    """The column `messages.flags_json`: why a reply ends before its end; NULL for a whole message."""
    return _encode(MessageFlags(cut)) if cut else None


def decode_cut(text: str | None) -> str:
    """Decode the output of `encode_cut`. Raises CodecError."""
    return cast("MessageFlags", _decode(text, MessageFlags)).cut if text else ""


def encode_omitted(omitted: Sequence[Omission]) -> str:
    """The column `conversations.context_omitted_json`."""
    return _encode(tuple(omitted))


def decode_omitted(text: str) -> tuple[Omission, ...]:
    """Decode the output of `encode_omitted`. Raises CodecError."""
    return cast("tuple[Omission, ...]", _decode(text, tuple[Omission, ...]))


def encode_earlier(earlier: Sequence[EarlierView]) -> str:
    """The column `conversations.context_earlier_json`."""
    return _encode(tuple(earlier))


def decode_earlier(text: str) -> tuple[EarlierView, ...]:
    """The newest of what `encode_earlier` wrote: older versions kept all. Raises CodecError."""
    return cast("tuple[EarlierView, ...]", _decode(text, tuple[EarlierView, ...]))[-MOST_EARLIER:]


def encode_totals(totals: Totals) -> str:
    """The column `conversations.totals_json`."""
    return _encode(totals)


def decode_totals(text: str) -> Totals:
    """Decode the output of `encode_totals`. Raises CodecError."""
    return cast("Totals", _decode(text, Totals))


def decode_all_totals(text: str) -> Totals:
    """The sum of several that `encode_totals` wrote, given as a JSON array. Raises CodecError."""
    total = Totals()
    for one in cast("tuple[Totals, ...]", _decode(text, tuple[Totals, ...])) if text != "[]" else ():
        total = total.plus(one)
    return total


def _encode(value: object) -> str:
    return msgspec.json.encode(_plain(value)).decode()


def _plain(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in cast("tuple[object, ...]", value)]
    if not isinstance(value, Struct):
        return value
    kind = type(value)
    named = {"type": NAMES[kind]} if kind in NAMES else {}
    told = {name: getattr(value, name) for name, _, _ in _shape(kind)}
    if kind is TextBlock and not told["attached"]:
        del told["attached"]  # few have it, and every message has text
    return named | {name: _plain(each) for name, each in told.items()}


def _decode(text: str, annotation: object) -> object:
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CodecError(f"This is not JSON: {error}.") from error
    return _decoder(annotation)(raw)


@cache
def _shape(kind: type) -> tuple[tuple[str, Decoder, bool], ...]:
    """Name, decoder and whether it must be there, for each field of a value."""
    hints = get_type_hints(kind)
    return tuple((field.name, _decoder(hints[field.name]), field.required) for field in fields(kind))


@cache
def _decoder(annotation: Any) -> Decoder:
    """Build the function that turns parsed JSON into a value of `annotation`."""
    if get_origin(annotation) is tuple:
        return _of_tuple(_decoder(get_args(annotation)[0]))
    if get_origin(annotation) in {Union, UnionType}:
        return _of_union(get_args(annotation))
    if issubclass(annotation, Struct):
        return _of_class(cast("type", annotation))
    if issubclass(annotation, StrEnum):
        return _of_enum(annotation)
    return _of_scalar(annotation)


def _of_tuple(item: Decoder) -> Decoder:
    def decode(raw: object) -> object:
        if not isinstance(raw, list):
            raise CodecError(f"A list is expected, not {raw!r:.80}.")
        return tuple(item(each) for each in cast("list[object]", raw))

    return decode


def _of_union(options: tuple[type, ...]) -> Decoder:
    if NoneType in options:
        inner = _decoder(next(option for option in options if option is not NoneType))
        return lambda raw: None if raw is None else inner(raw)
    by_name = {NAMES[option]: option for option in options}

    def decode(raw: object) -> object:
        name = _object(raw).get("type")
        if not isinstance(name, str) or name not in by_name:
            raise CodecError(f"The type {name!r:.80} is none of {', '.join(sorted(by_name))}.")
        return _decoder(by_name[name])(raw)

    return decode


def _of_class(kind: type) -> Decoder:
    def decode(raw: object) -> object:
        known = _object(raw)
        values: dict[str, object] = {}
        for name, decoder, required in _shape(kind):
            if name in known:
                values[name] = decoder(known[name])
            elif required:
                raise CodecError(f"The field {name!r} of {kind.__name__} is missing.")
        return kind(**values)

    return decode


def _object(raw: object) -> dict[str, object]:
    if not _is_object(raw):
        raise CodecError(f"An object is expected, not {raw!r:.80}.")
    return raw


def _is_object(raw: object) -> TypeGuard[dict[str, object]]:
    return isinstance(raw, dict)


def _of_enum(kind: type[StrEnum]) -> Decoder:
    def decode(raw: object) -> object:
        if not isinstance(raw, str) or raw not in kind.__members__.values():
            raise CodecError(f"{raw!r:.80} is no {kind.__name__}.")
        return kind(raw)

    return decode


def _of_scalar(kind: type) -> Decoder:
    """Text, a number or a truth value; a whole number will do for a float, a truth value for no number."""
    accepted = (int, float) if kind is float else (kind,)

    def decode(raw: object) -> object:
        if not isinstance(raw, accepted) or (isinstance(raw, bool) and kind is not bool):
            raise CodecError(f"{kind.__name__} is expected, not {raw!r:.80}.")
        return float(raw) if kind is float and isinstance(raw, int) else raw

    return decode
