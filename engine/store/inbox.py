"""The tables `inbox` and `queued_messages`: entries and messages that wait to be read (SPEC UNI-08)."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from engine.codec import CodecError, decode_blocks, encode_blocks, storable
from engine.machine.messages import Block, NewMessage, Origin, Role
from engine.ports import AppendMessage, DrainInboxRows
from engine.ports.storage import USER
from engine.records import Delivery, QueuedMessage, StoredMessage
from engine.store.connection import reads, writes
from engine.store.events import EventBatch
from engine.store.messages import append_message
from engine.store.ownership import OwnedTables


def deposit_entry(
    connection: sqlite3.Connection,
    conversation_id: str,
    kind: str,
    blocks: tuple[Block, ...],
    sender: str,
    at: float,
    *,
    quiet: bool = False,
) -> None:
    """Put an entry in; `kind` is tool_result, user or completion; a `quiet` one begins no turn by itself."""
    connection.execute(
        """INSERT INTO inbox (conversation_id, type, content_json, sender_id, created_at, quiet)
            VALUES (?, ?, ?, ?, ?, ?)""",
        (conversation_id, kind, encode_blocks(blocks), sender, at, int(quiet)),
    )


def count_waiting(connection: sqlite3.Connection, conversation_id: str) -> int:
    """Number of waiting entries."""
    row = connection.execute(
        "SELECT COUNT(*) FROM inbox WHERE conversation_id = ? AND consumed_at IS NULL", (conversation_id,)
    ).fetchone()
    return int(row[0])


def has_waking_entry(connection: sqlite3.Connection, conversation_id: str) -> bool:
    """True when one of them begins a turn."""
    row = connection.execute(
        "SELECT 1 FROM inbox WHERE conversation_id = ? AND consumed_at IS NULL AND NOT quiet LIMIT 1",
        (conversation_id,),
    ).fetchone()
    return row is not None


def suppress_entry_wakes(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Keep the waiting entries from beginning a turn."""
    connection.execute(
        "UPDATE inbox SET quiet = 1 WHERE conversation_id = ? AND consumed_at IS NULL", (conversation_id,)
    )


def drain_inbox(
    connection: sqlite3.Connection,
    conversation_id: str,
    draining: DrainInboxRows,
    at: float,
    tracking: str,
    events: EventBatch,
) -> list[StoredMessage]:
    """Every waiting entry as a message: the tool results as one, then one each; at most the first opens a turn."""
    rows = connection.execute(
        """SELECT id, type, content_json, sender_id FROM inbox
            WHERE conversation_id = ? AND consumed_at IS NULL ORDER BY id""",
        (conversation_id,),
    ).fetchall()
    results = [row for row in rows if row["type"] == "tool_result"]
    gathered = tuple(block for row in results for block in decode_blocks(row["content_json"]))
    first = [(Origin.TOOL, gathered, [row["id"] for row in results])] if results else []
    planned = (
        first
        + [
            (_find_origin(row), decode_blocks(row["content_json"]), [row["id"]])
            for row in rows
            if row["type"] != "tool_result"
        ]
    )[: len(draining.message_ids)]
    stored = [
        append_message(
            connection,
            conversation_id,
            AppendMessage(
                NewMessage(message_id, Role.USER, origin, blocks),
                run_id=draining.run_id,
                new_turn=draining.new_turn and position == 0,
            ),
            at,
            tracking,
            events,
        )
        for position, (message_id, (origin, blocks, _)) in enumerate(zip(draining.message_ids, planned, strict=False))
    ]
    consumed = [(at, entry) for _, _, entries in planned for entry in entries]
    connection.executemany("UPDATE inbox SET consumed_at = ? WHERE id = ?", consumed)
    return stored


def _find_origin(row: Any) -> Origin:
    if row["type"] == "completion":
        return Origin.COMPLETION
    return Origin.HUMAN if row["sender_id"] in {None, USER} else Origin.SUBAGENT


class _Content(msgspec.Struct, frozen=True):
    """The column `content_json`."""

    text: str
    image_ids: tuple[str, ...] = ()
    shell: bool = False


class QueueStore(OwnedTables):
    """The user's queue: each change is one transaction that leaves the whole queue in order."""

    @reads
    def read_queue(self, connection: sqlite3.Connection, conversation_id: str) -> tuple[QueuedMessage, ...]:
        """Queued messages, first to be sent first."""
        rows = connection.execute(
            "SELECT id, content_json, delivery FROM queued_messages WHERE conversation_id = ? ORDER BY ord",
            (conversation_id,),
        ).fetchall()
        return tuple(_read_queued(row) for row in rows)

    @writes
    def keep_queue(
        self,
        connection: sqlite3.Connection,
        conversation_id: str,
        waiting: Sequence[QueuedMessage],
        at: float,
        known: Collection[str] = (),
    ) -> None:
        """Make `waiting` the queue, without those of the `known` messages that a move has delivered meanwhile.

        Raises:
            OwnedElsewhere: a living process has the conversation.
        """
        self._instance.owns(connection, conversation_id)  # raises where another does
        write_queue(connection, conversation_id, waiting, at, known)


def write_queue(
    connection: sqlite3.Connection,
    conversation_id: str,
    waiting: Sequence[QueuedMessage],
    at: float,
    known: Collection[str] = (),
) -> None:
    """Bring the rows in line; a row that stays keeps its time of writing.

    Of the `known` messages those without a row are left out: a move has delivered them meanwhile.
    """
    before = {
        row["id"]: row["created_at"]
        for row in connection.execute(
            "SELECT id, created_at FROM queued_messages WHERE conversation_id = ?", (conversation_id,)
        )
    }
    connection.execute("DELETE FROM queued_messages WHERE conversation_id = ?", (conversation_id,))
    connection.executemany(
        """INSERT INTO queued_messages (id, conversation_id, ord, content_json, created_at, delivery)
            VALUES (?, ?, ?, ?, ?, ?)""",
        [
            (one.id, conversation_id, place, _encode_content(one), before.get(one.id, at), one.delivery.value)
            for place, one in enumerate(waiting, start=1)
            if one.id in before or one.id not in known
        ],
    )


def take_queued(connection: sqlite3.Connection, message_id: str, text: str) -> bool:
    """Take a row out whose message is stored in the same transaction; False where it is gone or was changed."""
    row = connection.execute(
        "SELECT id, content_json, delivery FROM queued_messages WHERE id = ?", (message_id,)
    ).fetchone()
    if row is None or _read_queued(row).text != storable(text):
        return False
    remove_queued(connection, message_id)
    return True


def remove_queued(connection: sqlite3.Connection, message_id: str) -> None:
    """One row goes: its message is sent in the same transaction. The places behind it keep their numbers."""
    connection.execute("DELETE FROM queued_messages WHERE id = ?", (message_id,))


def _encode_content(message: QueuedMessage) -> str:
    return msgspec.json.encode(_Content(storable(message.text), message.image_ids, message.is_shell)).decode()


def _read_queued(row: sqlite3.Row) -> QueuedMessage:
    try:
        known = msgspec.json.decode(row["content_json"], type=_Content)
    except msgspec.MsgspecError as error:
        raise CodecError(f"This is not a queued message: {error}.") from error
    delivery = Delivery(row["delivery"]) if row["delivery"] in set(Delivery) else Delivery.IDLE
    return QueuedMessage(row["id"], known.text, known.image_ids, known.shell, delivery)
