"""The tables `turns` and `messages`: appending by the turn rule, reading by seq."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from engine.codec import (
    CodecError,
    MessageFlags,
    decode_flags,
    decode_usage,
    encode_blocks,
    encode_flags,
    encode_usage,
    readable_blocks,
    storable,
    stored_blocks,
)
from engine.machine.messages import Block, NewMessage, Origin, Role, TextBlock, ToolUseBlock, is_own_call, text_in
from engine.ports import AppendMessage
from engine.records import StoredMessage
from engine.store import event_rows
from engine.store.event_batch import EventBatch
from engine.store.file_steps import command_of
from engine.store.naming import name_after, name_after_command
from tools.fresh_ids import fresh_id

T = TypeVar("T")
log = logging.getLogger(__name__)

_ROWS = """SELECT m.*, t.turn_number FROM messages AS m JOIN turns AS t ON t.id = m.turn_id"""


_COLUMNS = (
    "id",
    "conversation_id",
    "turn_id",
    "seq",
    "message_number",
    "role",
    "origin",
    "content_json",
    "text",
    "original_len",
    "silent",
    "run_id",
    "agent_id",
    "model",
    "usage_json",
    "cost_usd",
    "duration_ms",
    "flags_json",
    "created_at",
    "task_process_status",
)
_INSERT = f"INSERT INTO messages ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"


class _Place(Struct, frozen=True):
    """Position of the next message."""

    seq: int
    turn_id: str
    turn_number: int
    message_number: int


def append(
    connection: sqlite3.Connection,
    conversation_id: str,
    addition: AppendMessage,
    at: float,
    tracking: str = "",
    events: EventBatch | None = None,
) -> StoredMessage:
    """Insert a message behind all others; a conversation without a title is named after its first human one.

    `tracking` is its progress through task tracking; a notice has none.
    """
    message = addition.message
    place = _next_place(connection, conversation_id, addition.new_turn, at)
    row = _columns(addition, place, at)
    row |= {
        "conversation_id": conversation_id,
        "task_process_status": None if message.role is Role.SYSTEM else tracking or None,
    }
    connection.execute(_INSERT, row)
    _name_conversation(connection, conversation_id, message)
    if events is not None:
        events.add_message(addition, place.seq)
    else:
        event_rows.add_message(connection, conversation_id, addition, place.seq, at)
    return StoredMessage(
        id=message.id,
        seq=place.seq,
        turn_number=place.turn_number,
        message_number=place.message_number,
        role=message.role,
        origin=message.origin,
        blocks=stored_blocks(message.blocks),
        created_at=at,
        silent=message.silent,
        run_id=addition.run_id,
        model=addition.model,
        usage=addition.usage,
        duration_ms=addition.duration_ms,
        cut=message.cut,
        suspected=message.suspected,
    )


def _columns(addition: AppendMessage, place: _Place, at: float) -> dict[str, str | int | float | None]:
    """Columns of a new row, without those of its conversation."""
    message = addition.message
    return {
        "id": message.id,
        "turn_id": place.turn_id,
        "seq": place.seq,
        "message_number": place.message_number,
        "role": message.role,
        "origin": message.origin,
        "content_json": encode_blocks(message.blocks),
        "text": plain_text(message.blocks),
        "original_len": message.original_length,
        "silent": int(message.silent),
        "run_id": addition.run_id or None,
        "agent_id": addition.agent_id or None,
        "model": addition.model,
        "usage_json": encode_usage(addition.usage) if addition.usage else None,
        "cost_usd": addition.cost_usd,
        "duration_ms": addition.duration_ms,
        "flags_json": encode_flags(MessageFlags(message.cut, message.suspected)),
        "created_at": at,
    }


def read_range(
    connection: sqlite3.Connection, conversation_id: str, first: int, last: int | None, limit: int | None
) -> list[StoredMessage]:
    """Messages `first` to `last` by seq, ascending; with `limit` the newest of them."""
    rows = connection.execute(
        f"{_ROWS} WHERE m.conversation_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq DESC LIMIT ?",
        (conversation_id, first, 2**62 if last is None else last, -1 if limit is None else limit),
    ).fetchall()
    return [_stored(row) for row in reversed(rows)]


def newest_visible(connection: sqlite3.Connection, conversation_id: str) -> StoredMessage | None:
    """The last message a model can see, or None."""
    row = connection.execute(
        f"{_ROWS} WHERE m.conversation_id = ? AND m.role <> 'system' ORDER BY m.seq DESC LIMIT 1", (conversation_id,)
    ).fetchone()
    return _stored(row) if row else None


def tracking_now(connection: sqlite3.Connection, conversation_id: str) -> str:
    """Progress of a message that recovery adds: it waits where the newest one was tracked."""
    row = connection.execute(
        """SELECT task_process_status AS status FROM messages WHERE conversation_id = ? AND role <> 'system'
            ORDER BY seq DESC LIMIT 1""",
        (conversation_id,),
    ).fetchone()
    if row is None or row["status"] is None:
        return ""
    return "disabled" if row["status"] == "disabled" else "pending"


def _name_conversation(connection: sqlite3.Connection, conversation_id: str, message: NewMessage) -> None:
    """Call one without a title after its first human message, or until there is one after a command."""
    if message.origin is Origin.HUMAN and plain_text(message.blocks):
        words = next(block for block in message.blocks if isinstance(block, TextBlock))  # their digests come last
        name_after(connection, conversation_id, storable(words.text))
    if message.role is Role.SYSTEM and (call := _own_call(message.blocks)) is not None:
        name_after_command(connection, conversation_id, storable(command_of(call.input_json)))


def _own_call(blocks: tuple[Block, ...]) -> ToolUseBlock | None:
    """The command that the user ran with `!`, where these blocks are its row."""
    return next((one for one in blocks if isinstance(one, ToolUseBlock) and is_own_call(one.id)), None)


def plain_text(blocks: tuple[Block, ...]) -> str:
    """The column `messages.text`: the text of the text blocks."""
    return storable(text_in(blocks, "\n"))


def _next_place(connection: sqlite3.Connection, conversation_id: str, new_turn: bool, at: float) -> _Place:
    newest = connection.execute(
        "SELECT seq, turn_id, message_number FROM messages WHERE conversation_id = ? ORDER BY seq DESC LIMIT 1",
        (conversation_id,),
    ).fetchone()
    turn = connection.execute(
        "SELECT id, turn_number FROM turns WHERE conversation_id = ? ORDER BY turn_number DESC LIMIT 1",
        (conversation_id,),
    ).fetchone()
    seq = newest["seq"] + 1 if newest else 1
    message_number = newest["message_number"] + 1 if newest and turn and newest["turn_id"] == turn["id"] else 0
    if turn and not (new_turn and message_number):
        return _Place(seq, turn["id"], turn["turn_number"], message_number)
    number = turn["turn_number"] + 1 if turn else 0
    turn_id = fresh_id()
    connection.execute(
        "INSERT INTO turns (id, conversation_id, turn_number, started_at) VALUES (?, ?, ?, ?)",
        (turn_id, conversation_id, number, at),
    )
    return _Place(seq, turn_id, number, 0)


def _stored(row: Any) -> StoredMessage:
    """A row as a value; unreadable parts go to the log and cost neither the row nor its conversation."""
    blocks, problem = readable_blocks(row["content_json"])
    if problem:
        log.warning("message %s cannot be read whole: %s", row["id"], problem)
    flags = _lenient(decode_flags, row["flags_json"], row["id"]) or MessageFlags()
    return StoredMessage(
        id=row["id"],
        seq=row["seq"],
        turn_number=row["turn_number"],
        message_number=row["message_number"],
        role=Role(row["role"]),
        origin=Origin(row["origin"]),
        blocks=blocks,
        created_at=row["created_at"],
        silent=bool(row["silent"]),
        run_id=row["run_id"] or "",
        model=row["model"],
        usage=_lenient(decode_usage, row["usage_json"], row["id"]) if row["usage_json"] else None,
        duration_ms=row["duration_ms"],
        cut=flags.cut,
        suspected=flags.suspected,
    )


def _lenient(decode: Callable[[str], T], text: str, message_id: str) -> T | None:
    try:
        return decode(text)
    except CodecError as error:
        log.warning("message %s cannot be read whole: %s", message_id, error)
        return None
