"""Removal of a conversation in slices; its own row goes last."""

from __future__ import annotations

import sqlite3

from engine.store.ownership import Instance

ROWS = 300
"""Rows per slice of a table without long texts; runs take their traces and spans along."""
_MESSAGES = 500
_SMALL = ("copied_rows", "events", "runs", "turns", "file_steps")


def mark(connection: sqlite3.Connection, conversation_id: str, by: str) -> None:
    """Hide the conversation; `by` is the process that removes it."""
    connection.execute("UPDATE conversations SET partial = ? WHERE id = ?", (by, conversation_id))


def left(connection: sqlite3.Connection, instance: Instance) -> list[str]:
    """The conversations that a dead process left half made or half removed."""
    rows = connection.execute("SELECT id, partial FROM conversations WHERE partial IS NOT NULL").fetchall()
    return [row["id"] for row in rows if instance.living_pid(connection, row["partial"]) is None]


def calls_of(connection: sqlite3.Connection, conversation_id: str) -> list[str]:
    """The ids of a conversation's calls, as its tools were given them."""
    rows = connection.execute("SELECT tool_use_id FROM tool_calls WHERE conversation_id = ?", (conversation_id,))
    return [row["tool_use_id"] for row in rows]


def remove_some(connection: sqlite3.Connection, conversation_id: str, size: int) -> bool:
    """Remove messages with about `size` bytes of text, or a slice of other rows; True when nothing is left."""
    last = end_of_slice(connection, conversation_id, 0, size)
    if last is not None:
        connection.execute("DELETE FROM messages WHERE conversation_id = ? AND seq <= ?", (conversation_id, last))
        return False
    for table in _SMALL:
        done = connection.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE conversation_id = ? LIMIT {ROWS})",
            (conversation_id,),
        )
        if done.rowcount:
            return False
    return True


def end_of_slice(connection: sqlite3.Connection, conversation_id: str, after: int, size: int) -> int | None:
    """The seq up to which the messages behind `after` hold about `size` bytes with their calls; None without any."""
    rows = connection.execute(
        f"""SELECT seq, length(content_json) + length(text) + COALESCE((SELECT SUM(length(input_json)
                + length(output_text) + length(output_json) + length(display_json)) FROM tool_calls
                WHERE assistant_message_id = m.id), 0) AS size
            FROM messages AS m WHERE conversation_id = ? AND seq > ? ORDER BY seq LIMIT {_MESSAGES}""",
        (conversation_id, after),
    )
    last, total = None, 0
    for row in rows:
        last, total = int(row["seq"]), total + int(row["size"])
        if total >= size:
            break
    return last
