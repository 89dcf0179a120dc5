"""Migration for rows of imports that are copies."""

from __future__ import annotations

import sqlite3
from typing import Final

_STATEMENTS: Final = (
    """CREATE TABLE copied_rows (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        origin TEXT NOT NULL)""",
    "CREATE INDEX copied_rows_origin ON copied_rows (origin)",
    "CREATE INDEX copied_rows_conversation ON copied_rows (conversation_id)",
)


def add_copied_rows(connection: sqlite3.Connection) -> None:
    """`id` names a model call or a message of an import, `origin` the row that it was made from, here or elsewhere."""
    for statement in _STATEMENTS:
        connection.execute(statement)
