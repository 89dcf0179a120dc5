"""Schema of the event stream and of requests to cancel runs of another process."""

from __future__ import annotations

import sqlite3

_STREAM = (
    """CREATE TABLE events_numbered (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        conversation_id TEXT,
        message_id TEXT,
        run_id TEXT,
        agent_id TEXT,
        type TEXT NOT NULL,
        payload_json TEXT NOT NULL,
        ts REAL NOT NULL)""",
    "INSERT INTO events_numbered SELECT seq, id, conversation_id, message_id, run_id, agent_id, type, payload_json, ts"
    " FROM events ORDER BY seq",
    "DROP TABLE events",
    "ALTER TABLE events_numbered RENAME TO events",
    "CREATE INDEX events_conversation ON events (conversation_id, seq)",
)


def number_events(connection: sqlite3.Connection) -> None:
    """Never use the number of a removed event again. No index on `id`: its random order would cost a page a row."""
    for statement in _STREAM:
        connection.execute(statement)


def add_cancel_requests(connection: sqlite3.Connection) -> None:
    """One row for each conversation whose run another process wants cancelled; the owner takes it out."""
    connection.execute(
        """CREATE TABLE cancel_requests (
            conversation_id TEXT PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
            run_id TEXT,
            requested_at REAL NOT NULL) WITHOUT ROWID"""
    )
