"""What rewinding keeps: the files each turn changed, and which conversation branched off which."""

from __future__ import annotations

import sqlite3

_STATEMENTS = (
    """CREATE TABLE file_steps (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        kind TEXT NOT NULL CHECK (kind IN ('turn', 'restore', 'branch')),
        state TEXT NOT NULL CHECK (state IN ('open', 'restoring', 'done')),
        seq INTEGER NOT NULL,
        folder BLOB NOT NULL,
        look TEXT NOT NULL,
        began REAL NOT NULL,
        changes BLOB NOT NULL,
        coverage BLOB NOT NULL,
        undone_from TEXT NOT NULL DEFAULT '',
        target_seq INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX file_steps_conversation ON file_steps (conversation_id, began)",
    "CREATE INDEX file_steps_unfinished ON file_steps (state) WHERE state <> 'done'",
    "ALTER TABLE conversations ADD COLUMN branch_of TEXT REFERENCES conversations ON DELETE SET NULL",
    "ALTER TABLE conversations ADD COLUMN branch_seq INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE conversations ADD COLUMN superseded_by TEXT REFERENCES conversations ON DELETE SET NULL",
    "CREATE INDEX conversations_branch ON conversations (branch_of) WHERE branch_of IS NOT NULL",
    "CREATE INDEX conversations_superseded ON conversations (superseded_by) WHERE superseded_by IS NOT NULL",
)


def add_rewind_tables(connection: sqlite3.Connection) -> None:
    """`superseded_by` hides a conversation from the list while the one that took its place is there."""
    for statement in _STATEMENTS:
        connection.execute(statement)
