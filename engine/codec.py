"""Values of a conversation as JSON text and back: blocks, states, displays, usage and totals.

A class of a union has its tag under `type`. Fields that a later version added take their defaults;
fields that this version does not know are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from engine.machine.messages import Block, TextBlock, ToolResult, Usage
from engine.machine.states import State
from engine.machine.views import MOST_EARLIER, EarlierView, Omission
from engine.records.runs import Totals
from tools.contract import AgentsDisplay, Display
from tools.displays import TodoList

UNREADABLE = "(Phoenix cannot read this part) "
LONGEST_UNREADABLE = 4_000
"""Characters that are kept of it."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class MessageFlags(Struct, frozen=True, omit_defaults=True):
    """Rare flags of messages; see `NewMessage`."""

    cut: str = ""
    suspected: tuple[str, ...] = ()


class CodecError(ValueError):
    """Raised for text that is no such value; the message describes the fault."""


def storable(text: str) -> str:
    """Text as a database and a JSON document can hold it: no NUL, lone surrogates as U+FFFD (SPEC T-GRD)."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(lambda match: "" if match[0] == "\x00" else "\ufffd", text)


def encode_blocks(blocks: Sequence[Block]) -> str:
    """The column `messages.content_json`."""
    return _encode(tuple(blocks))


def restore_blocks(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks as they are read again: without NUL, and with lone surrogates replaced (SPEC T-GRD)."""
    try:
        written = msgspec.json.encode(blocks)
    except UnicodeEncodeError:  # a lone surrogate
        written = rb"\u0000"
    return decode_blocks(encode_blocks(blocks)) if rb"\u0000" in written else blocks


def decode_blocks(text: str) -> tuple[Block, ...]:
    """Decode the output of `encode_blocks`. Raises CodecError."""
    return cast("tuple[Block, ...]", _decode(text, tuple[Block, ...]))


def readable_blocks(text: str) -> tuple[tuple[Block, ...], str]:
    """Decode the blocks of a message, and the first problem, empty without one; invalid blocks are kept as text.

    Serves rows of the database: another version may have written them, or a disk may have damaged them.
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
        return cast("Block", msgspec.convert(raw, Block))
    except (msgspec.ValidationError, RecursionError):
        fields = cast("dict[str, object]", raw) if isinstance(raw, dict) else {"text": raw}
        told = fields.get("text", fields)
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


def encode_flags(flags: MessageFlags) -> str | None:
    """The column `messages.flags_json`; NULL for a message without any."""
    return _encode(flags) if flags != MessageFlags() else None


def decode_flags(text: str | None) -> MessageFlags:
    """Decode the output of `encode_flags`. Raises CodecError."""
    return cast("MessageFlags", _decode(text, MessageFlags)) if text else MessageFlags()


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
    """Decode the newest views of `encode_earlier`: older versions kept all. Raises CodecError."""
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


def encode_todos(todos: TodoList) -> str:
    """The column `conversations.todos_json`; empty for a list without items or history."""
    return _encode(todos) if todos != TodoList() else ""


def decode_todos(text: str) -> TodoList:
    """Decode the output of `encode_todos`. Raises CodecError."""
    return cast("TodoList", _decode(text, TodoList)) if text else TodoList()


def _encode(value: object) -> str:
    try:
        written = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate
        written = b""
    if not written or rb"\u0000" in written:
        written = msgspec.json.encode(_storable(msgspec.to_builtins(value)))
    return written.decode()


def _storable(value: object) -> object:
    """Copy a document with every text in it made storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list | tuple):
        return [_storable(each) for each in cast("Sequence[object]", value)]
    if isinstance(value, dict):
        return {name: _storable(each) for name, each in cast("dict[str, object]", value).items()}
    return value


def _decode(text: str, kind: object) -> object:
    try:
        return _decoder(kind).decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise CodecError(f"This cannot be read: {error}.") from error


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:  # unions and tuples are no class to a type checker
    """Build the decoder of a type at its first use, so that loading this module builds none."""
    return msgspec.json.Decoder(kind)
