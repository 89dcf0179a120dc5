"""Schema step for the delivery of queued messages."""

from __future__ import annotations

import sqlite3


def add_delivery_column(connection: sqlite3.Connection) -> None:
    """Add when a queued message is sent: `idle`, as all existing rows, or `tool`."""
    connection.execute("ALTER TABLE queued_messages ADD COLUMN delivery TEXT NOT NULL DEFAULT 'idle'")
