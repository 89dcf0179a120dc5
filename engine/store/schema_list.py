"""What the list of conversations keeps: who is pinned, and who gave a title."""

from __future__ import annotations

import sqlite3


def add_list_columns(connection: sqlite3.Connection) -> None:
    """`pinned_at` orders the pins; titles that are there already count as the user's own."""
    connection.execute("ALTER TABLE conversations ADD COLUMN pinned_at REAL")
    connection.execute(
        "ALTER TABLE conversations ADD COLUMN title_by TEXT NOT NULL DEFAULT ''"
        " CHECK (title_by IN ('', 'model', 'user'))"
    )
    connection.execute("UPDATE conversations SET title_by = 'user' WHERE title <> ''")
