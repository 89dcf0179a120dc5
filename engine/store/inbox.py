"""The table `inbox`: entries that wait to become messages, and their conversion (SPEC UNI-08)."""

from __future__ import annotations

import sqlite3
from typing import Any

from engine.codec import decode_blocks, encode_blocks
from engine.machine.messages import Block, NewMessage, Origin, Role
from engine.ports import AppendMessage, DrainInboxRows
from engine.ports.agent_store import USER
from engine.records import StoredMessage
from engine.store import messages
from engine.store.event_batch import EventBatch


def deposit(
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


def waiting(connection: sqlite3.Connection, conversation_id: str) -> int:
    """Number of waiting entries."""
    row = connection.execute(
        "SELECT COUNT(*) FROM inbox WHERE conversation_id = ? AND consumed_at IS NULL", (conversation_id,)
    ).fetchone()
    return int(row[0])


def wakes(connection: sqlite3.Connection, conversation_id: str) -> bool:
    """True when one of them begins a turn."""
    row = connection.execute(
        "SELECT 1 FROM inbox WHERE conversation_id = ? AND consumed_at IS NULL AND NOT quiet LIMIT 1",
        (conversation_id,),
    ).fetchone()
    return row is not None


def suppress_wakes(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Keep the waiting entries from beginning a turn."""
    connection.execute(
        "UPDATE inbox SET quiet = 1 WHERE conversation_id = ? AND consumed_at IS NULL", (conversation_id,)
    )


def drain(
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
    planned = _plan(rows)[: len(draining.message_ids)]
    stored = [
        messages.append(
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


def _plan(rows: list[Any]) -> list[tuple[Origin, tuple[Block, ...], list[int]]]:
    """Origin, blocks and inbox ids of each message to be."""
    results = [row for row in rows if row["type"] == "tool_result"]
    gathered = tuple(block for row in results for block in decode_blocks(row["content_json"]))
    first = [(Origin.TOOL, gathered, [row["id"] for row in results])] if results else []
    return first + [
        (_origin(row), decode_blocks(row["content_json"]), [row["id"]]) for row in rows if row["type"] != "tool_result"
    ]


def _origin(row: Any) -> Origin:
    if row["type"] == "completion":
        return Origin.COMPLETION
    return Origin.HUMAN if row["sender_id"] in {None, USER} else Origin.SUBAGENT
