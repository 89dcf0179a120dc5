"""Schema changes for the task board."""

from __future__ import annotations

import sqlite3
from typing import Final

_BY_STATUS: Final = """CREATE INDEX messages_tracking
    ON messages (conversation_id, task_process_status, role, tracked_task_id, seq)"""
"""Has all that counts need: the columns lie behind the texts, which would be read for every message."""
_OLD: Final = "'earlier', 'memory'"


def add_task_tracking(connection: sqlite3.Connection) -> None:
    """`track_tasks` is the user's choice against the setting; calls of the task agent have the purpose `tracking`.

    A check of a table cannot be changed, so the calls move into a new one, with all their columns and indexes.
    """
    connection.execute(
        "ALTER TABLE conversations ADD COLUMN track_tasks INTEGER NOT NULL DEFAULT 0 CHECK (track_tasks IN (0, 1))"
    )
    connection.execute("DROP INDEX messages_tracked")
    connection.execute(_BY_STATUS)
    definition = "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'model_calls' AND type = ? AND sql IS NOT NULL"
    (table,) = connection.execute(definition, ("table",)).fetchall()
    indexes = connection.execute(definition, ("index",)).fetchall()
    widened = str(table[1]).replace(_OLD, f"{_OLD}, 'tracking'")
    connection.execute("ALTER TABLE model_calls RENAME TO earlier_calls")
    connection.execute(widened)
    connection.execute("INSERT INTO model_calls SELECT * FROM earlier_calls")
    connection.execute("DROP TABLE earlier_calls")
    for index in indexes:
        connection.execute(str(index[1]))


def add_tracking_problem(connection: sqlite3.Connection) -> None:
    """The reason why messages wait or failed, which a restart would lose; empty for existing rows."""
    connection.execute("ALTER TABLE conversations ADD COLUMN tracking_problem TEXT NOT NULL DEFAULT ''")
