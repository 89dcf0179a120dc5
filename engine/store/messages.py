"""The tables `turns`, `messages` and `attachments`: appending by the turn rule, reading by seq, image files."""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

import msgspec
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
    restore_blocks,
    storable,
)
from engine.machine.messages import Block, Origin, Role, TextBlock, ToolUseBlock, is_own_call, text_in
from engine.ports import AppendMessage
from engine.records import Attachment, StoredMessage
from engine.store.events import EventBatch, add_message_event
from engine.store.names import name_after, name_after_command
from tools.contract import PreparedImage
from tools.files.own_files import read_own, write_file
from tools.fresh_ids import fresh_id

T = TypeVar("T")
log = logging.getLogger(__name__)

_MESSAGES = """SELECT m.*, t.turn_number FROM messages AS m JOIN turns AS t ON t.id = m.turn_id"""


_OWN_COLUMNS = (
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
_INSERT = f"INSERT INTO messages ({', '.join(_OWN_COLUMNS)}) VALUES (:{', :'.join(_OWN_COLUMNS)})"


class _Place(Struct, frozen=True):
    """Position of the next message."""

    seq: int
    turn_id: str
    turn_number: int
    message_number: int


def append_message(
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
    place = _find_next_place(connection, conversation_id, addition.new_turn, at)
    row = _make_row(addition, place, at)
    row |= {
        "conversation_id": conversation_id,
        "task_process_status": None if message.role is Role.SYSTEM else tracking or None,
    }
    connection.execute(_INSERT, row)
    if message.origin is Origin.HUMAN and join_text(message.blocks):
        words = next(block for block in message.blocks if isinstance(block, TextBlock))  # their digests come last
        name_after(connection, conversation_id, storable(words.text))
    if message.role is Role.SYSTEM and (call := _find_own_call(message.blocks)) is not None:
        name_after_command(connection, conversation_id, storable(parse_command(call.input_json)))
    if events is not None:
        events.add_message(addition, place.seq)
    else:
        add_message_event(connection, conversation_id, addition, place.seq, at)
    return StoredMessage(
        id=message.id,
        seq=place.seq,
        turn_number=place.turn_number,
        message_number=place.message_number,
        role=message.role,
        origin=message.origin,
        blocks=restore_blocks(message.blocks),
        created_at=at,
        silent=message.silent,
        run_id=addition.run_id,
        model=addition.model,
        usage=addition.usage,
        duration_ms=addition.duration_ms,
        cut=message.cut,
        suspected=message.suspected,
    )


def _make_row(addition: AppendMessage, place: _Place, at: float) -> dict[str, str | int | float | None]:
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
        "text": join_text(message.blocks),
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


def read_messages(
    connection: sqlite3.Connection, conversation_id: str, first: int, last: int | None, limit: int | None
) -> list[StoredMessage]:
    """Messages `first` to `last` by seq, ascending; with `limit` the newest of them."""
    rows = connection.execute(
        f"{_MESSAGES} WHERE m.conversation_id = ? AND m.seq BETWEEN ? AND ? ORDER BY m.seq DESC LIMIT ?",
        (conversation_id, first, 2**62 if last is None else last, -1 if limit is None else limit),
    ).fetchall()
    return [_read_row(row) for row in reversed(rows)]


def read_newest_visible(connection: sqlite3.Connection, conversation_id: str) -> StoredMessage | None:
    """The last message a model can see, or None."""
    row = connection.execute(
        f"{_MESSAGES} WHERE m.conversation_id = ? AND m.role <> 'system' ORDER BY m.seq DESC LIMIT 1",
        (conversation_id,),
    ).fetchone()
    return _read_row(row) if row else None


def read_tracking(connection: sqlite3.Connection, conversation_id: str) -> str:
    """Progress of a message that recovery adds: it waits where the newest one was tracked."""
    row = connection.execute(
        """SELECT task_process_status AS status FROM messages WHERE conversation_id = ? AND role <> 'system'
            ORDER BY seq DESC LIMIT 1""",
        (conversation_id,),
    ).fetchone()
    if row is None or row["status"] is None:
        return ""
    return "disabled" if row["status"] == "disabled" else "pending"


def _find_own_call(blocks: tuple[Block, ...]) -> ToolUseBlock | None:
    """The command that the user ran with `!`, where these blocks are its row."""
    return next((one for one in blocks if isinstance(one, ToolUseBlock) and is_own_call(one.id)), None)


def join_text(blocks: tuple[Block, ...]) -> str:
    """The column `messages.text`: the text of the text blocks."""
    return storable(text_in(blocks, "\n"))


def _find_next_place(connection: sqlite3.Connection, conversation_id: str, new_turn: bool, at: float) -> _Place:
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


def _read_row(row: Any) -> StoredMessage:
    """A row as a value; unreadable parts go to the log and cost neither the row nor its conversation."""
    blocks, problem = readable_blocks(row["content_json"])
    if problem:
        log.warning("message %s cannot be read whole: %s", row["id"], problem)
    flags = _decode_leniently(decode_flags, row["flags_json"], row["id"]) or MessageFlags()
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
        usage=_decode_leniently(decode_usage, row["usage_json"], row["id"]) if row["usage_json"] else None,
        duration_ms=row["duration_ms"],
        cut=flags.cut,
        suspected=flags.suspected,
    )


def _decode_leniently(decode: Callable[[str], T], text: str, message_id: str) -> T | None:
    try:
        return decode(text)
    except CodecError as error:
        log.warning("message %s cannot be read whole: %s", message_id, error)
        return None


class _Shell(msgspec.Struct):
    command: str = ""


def parse_command(arguments: str) -> str:
    """The command that a call runs; its arguments as they are where they name none."""
    try:
        return msgspec.json.decode(arguments, type=_Shell).command
    except msgspec.DecodeError:
        return arguments


_FILE_NAME: Final = re.compile(r"[0-9a-f]{64}")


def is_attachment_name(text: str) -> bool:
    """True when `text` can name one of our files: anything else, from whatever wrote the database, is a path."""
    return _FILE_NAME.fullmatch(text) is not None


def hash_content(content: bytes) -> str:
    """The name of the file with this content: its SHA-256 in lower-case hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def read_attachment_file(folder: Path, name: str) -> bytes | None:
    """The content of one of our files; None when it is gone, is a link or no file, or does not match its name."""
    if not is_attachment_name(name):
        return None
    try:
        content = read_own(_resolve_file(folder, name))
    except OSError:
        return None
    return content if hash_content(content) == name else None


def _resolve_file(folder: Path, name: str) -> Path:
    """Path of one of our files: a store in memory links to those that it cannot write (`open_copy_in_memory`)."""
    place = folder / name
    target = place.readlink() if place.is_symlink() else place
    return target if target.name == name else place


def add_attachment(
    connection: sqlite3.Connection, folder: Path, conversation_id: str, image: PreparedImage, at: float
) -> Attachment:
    """Store an image; the same content again gives the same attachment."""
    digest = store_file(folder, image.data)
    connection.execute(
        """INSERT OR IGNORE INTO attachments (id, conversation_id, sha256, path, media_type, width, height, bytes,
            orig_width, orig_height, orig_bytes, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            str(uuid4()),
            conversation_id,
            digest,
            digest,
            image.media_type,
            image.width,
            image.height,
            len(image.data),
            image.original_width,
            image.original_height,
            image.original_bytes,
            at,
        ),
    )
    row = connection.execute(
        "SELECT id FROM attachments WHERE conversation_id = ? AND sha256 = ?", (conversation_id, digest)
    ).fetchone()
    return read_attachments(connection, folder, [row["id"]])[row["id"]]


def store_file(folder: Path, content: bytes) -> str:
    """Write the file of this content unless it is there; returns its SHA-256, which is its name."""
    digest = hash_content(content)
    if read_attachment_file(folder, digest) is None:
        write_file(folder / digest, content)
    return digest


def read_attachments(connection: sqlite3.Connection, folder: Path, ids: Sequence[str]) -> dict[str, Attachment]:
    """Attachments by id; unknown ids are missing, and so are those that name no file of ours."""
    rows = connection.execute(
        "SELECT a.* FROM json_each(?) AS wanted JOIN attachments AS a ON a.id = wanted.value",
        (msgspec.json.encode(list(ids)).decode(),),
    ).fetchall()
    return {
        row["id"]: Attachment(
            id=row["id"],
            path=_resolve_file(folder, row["path"]),
            media_type=row["media_type"],
            width=row["width"],
            height=row["height"],
            bytes=row["bytes"],
            original_width=row["orig_width"],
            original_height=row["orig_height"],
            original_bytes=row["orig_bytes"],
        )
        for row in rows
        if is_attachment_name(row["path"])
    }


def list_attachment_files(connection: sqlite3.Connection, conversation_id: str) -> list[str]:
    """The names of a conversation's files."""
    rows = connection.execute("SELECT path FROM attachments WHERE conversation_id = ?", (conversation_id,)).fetchall()
    return [row["path"] for row in rows]


def remove_unshared_files(connection: sqlite3.Connection, folder: Path, names: Iterable[str]) -> None:
    """Remove files that no row names; runs in one transaction, so that none is added meanwhile."""
    for name in filter(is_attachment_name, names):
        if connection.execute("SELECT 1 FROM attachments WHERE path = ?", (name,)).fetchone() is None:
            (folder / name).unlink(missing_ok=True)
