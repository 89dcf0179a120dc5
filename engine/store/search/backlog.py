"""Indexing of messages older than the index: newest first, in slices short enough for other writers."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.ports.storage import IndexProgress
from engine.store.schema_search import FIRST_ID, OLDER_TEXTS

SLICE_BYTES: Final = 120_000
"""Bytes of text indexed in one transaction: about 15 ms, the longest delay of a move."""
SLICE_MESSAGES: Final = 400


def progress(connection: sqlite3.Connection) -> IndexProgress:
    """Number of the older messages that are indexed."""
    row = connection.execute("SELECT below, total FROM search_backlog").fetchone()
    return IndexProgress(row["total"] - (row["below"] - 1), row["total"])


def index_slice(connection: sqlite3.Connection) -> IndexProgress:
    """Index the newest of the older messages that are not."""
    below = int(connection.execute("SELECT below FROM search_backlog").fetchone()["below"])
    first = _first_of_slice(connection, below)
    rows = connection.execute(OLDER_TEXTS, {"first": first, "last": below - 1}).fetchall()
    known = {row["source"] for row in rows if _is_indexed(connection, row["source"])}
    new = [row for row in rows if row["source"] not in known]
    lowest = connection.execute("SELECT MIN(id) AS id FROM search_rows").fetchone()["id"]
    start = min(FIRST_ID if lowest is None else int(lowest), FIRST_ID) - len(new)
    connection.executemany(
        "INSERT INTO search_rows (id, source, conversation_id, speaker, created_at) VALUES (?, ?, ?, ?, ?)",
        [
            (start + number, row["source"], row["conversation_id"], row["speaker"], row["created_at"])
            for number, row in enumerate(new)
        ],
    )
    connection.execute(
        """INSERT INTO search_index (rowid, text)
            SELECT id, text FROM search_texts WHERE id BETWEEN ? AND ? ORDER BY id""",
        (start, start + len(new) - 1),
    )
    connection.execute("UPDATE search_backlog SET below = ?", (first,))
    return progress(connection)


def _is_indexed(connection: sqlite3.Connection, source: str) -> bool:
    """True when it was rewritten since, and so indexed by its trigger."""
    return connection.execute("SELECT 1 FROM search_rows WHERE source = ?", (source,)).fetchone() is not None


def _first_of_slice(connection: sqlite3.Connection, below: int) -> int:
    """The rowid at which the slice under `below` begins; 1 when nothing is left under it."""
    rows = connection.execute(
        """SELECT rowid, length(text) + COALESCE((SELECT SUM(length(input_json) + length(output_text))
            FROM tool_calls WHERE assistant_message_id = m.id), 0) AS size
            FROM messages AS m WHERE rowid < ? ORDER BY rowid DESC LIMIT ?""",
        (below, SLICE_MESSAGES),
    )
    first, size, count = 1, 0, 0
    for row in rows:
        size, count, first = size + int(row["size"]), count + 1, int(row["rowid"])
        if size >= SLICE_BYTES:
            return first
    return first if count == SLICE_MESSAGES else 1
