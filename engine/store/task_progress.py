"""Progress of messages through task tracking, the column `task_process_status` (SPEC ACX-04).

Each change has its event in the same transaction (SPEC SDK-20).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from engine.codec import storable
from engine.ports.task_store import MessageTracking
from engine.store import event_rows

LONGEST_PROBLEM: Final = 1_000
"""Characters of a stored reason: it may quote a provider, or a model."""
_PENDING: Final = """SELECT seq FROM messages
    WHERE conversation_id = ? AND task_process_status = 'pending' ORDER BY +seq LIMIT ?"""
"""The sign keeps SQLite from walking all messages in their order, texts included, in place of the index by status."""
_SETTLE: Final = """UPDATE messages SET task_process_status = ?
    WHERE conversation_id = ? AND task_process_status = ? RETURNING seq, id"""
_MARK: Final = """UPDATE messages SET task_process_status = ?1
    WHERE conversation_id = ?2 AND seq = ?3 AND task_process_status IS NOT ?1 RETURNING seq, id"""


def pending(connection: sqlite3.Connection, conversation_id: str, limit: int = -1) -> tuple[int, ...]:
    """Seqs of messages that wait, ascending; -1: all of them."""
    return tuple(row["seq"] for row in connection.execute(_PENDING, (conversation_id, limit)))


def settle(
    connection: sqlite3.Connection, conversation_id: str, of: MessageTracking, to: MessageTracking, at: float
) -> None:
    """Change the progress of all messages with the progress `of`, each with its event."""
    changed = connection.execute(_SETTLE, (to.value, conversation_id, of.value)).fetchall()
    _record_updates(connection, conversation_id, changed, to, at)


def mark(
    connection: sqlite3.Connection, conversation_id: str, seqs: Iterable[int], to: MessageTracking, at: float
) -> None:
    """Set the progress of these messages; each whose progress it changes has its event."""
    changed = [row for seq in seqs for row in connection.execute(_MARK, (to.value, conversation_id, seq)).fetchall()]
    _record_updates(connection, conversation_id, changed, to, at)


def keep_problem(connection: sqlite3.Connection, conversation_id: str, problem: str) -> None:
    """Store the reason why messages wait or failed; empty without one."""
    connection.execute(
        "UPDATE conversations SET tracking_problem = ?1 WHERE id = ?2 AND tracking_problem <> ?1",
        (storable(problem[:LONGEST_PROBLEM]), conversation_id),
    )


def _record_updates(
    connection: sqlite3.Connection, conversation_id: str, changed: Iterable[Any], to: MessageTracking, at: float
) -> None:
    """Append the events of changed rows in the order of the messages: RETURNING has none of its own."""
    ids = [row["id"] for row in sorted(changed, key=lambda row: int(row["seq"]))]
    event_rows.add_updates(connection, conversation_id, ids, to.value, at)
