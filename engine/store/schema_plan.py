"""Schema step for the todo list and the accepted plan of a conversation."""

from __future__ import annotations

import sqlite3


def add_plan_columns(connection: sqlite3.Connection) -> None:
    """Add the todo list, the accepted plan, and the number of messages when it was accepted; all empty for existing
    rows.
    """
    for column in (
        "todos_json TEXT NOT NULL DEFAULT ''",
        "plan_text TEXT NOT NULL DEFAULT ''",
        "plan_at INTEGER NOT NULL DEFAULT 0",
    ):
        connection.execute(f"ALTER TABLE conversations ADD COLUMN {column}")
