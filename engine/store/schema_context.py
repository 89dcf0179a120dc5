"""Columns for what models no longer see of a conversation, and from when on older messages are summarized."""

from __future__ import annotations

import sqlite3


def add_context_columns(connection: sqlite3.Connection) -> None:
    """Omitted parts, the views before each compaction, and the threshold; all empty for what is there."""
    for column in (
        "context_omitted_json TEXT NOT NULL DEFAULT '[]'",
        "context_earlier_json TEXT NOT NULL DEFAULT '[]'",
        "compact_percent INTEGER NOT NULL DEFAULT 0",
    ):
        connection.execute(f"ALTER TABLE conversations ADD COLUMN {column}")
