"""What is kept of a sub-agent beyond the columns of version 1."""

from __future__ import annotations

import sqlite3


def add_agent_columns(connection: sqlite3.Connection) -> None:
    """Its task as it was given, its place among the tasks of one call, and how long a run may take."""
    connection.execute("ALTER TABLE conversations ADD COLUMN agent_task TEXT")
    connection.execute("ALTER TABLE conversations ADD COLUMN agent_ordinal INTEGER")
    connection.execute("ALTER TABLE conversations ADD COLUMN agent_timeout REAL")


def add_quiet_entries(connection: sqlite3.Connection) -> None:
    """Which entries of an inbox begin no turn by themselves."""
    connection.execute("ALTER TABLE inbox ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1))")
