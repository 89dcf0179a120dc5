"""What marks a conversation that is being copied, imported or removed in several transactions."""

from __future__ import annotations

import sqlite3


def add_partial_column(connection: sqlite3.Connection) -> None:
    """`partial` names the process that is at it; nobody sees such a conversation, and once that process is dead the
    rest of it is removed. NULL: whole.
    """
    connection.execute("ALTER TABLE conversations ADD COLUMN partial TEXT")
    connection.execute("CREATE INDEX conversations_partial ON conversations (partial) WHERE partial IS NOT NULL")
