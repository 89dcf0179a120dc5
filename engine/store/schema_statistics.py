"""Columns and indexes for sums over time (docs/decisions/history.md, Statistics)."""

from __future__ import annotations

import sqlite3
from typing import Final

_STATEMENTS: Final = (
    "CREATE INDEX model_calls_started ON model_calls (started_at)",
    # Computed and stored in the index alone: a sum over results would read every page of their texts.
    """ALTER TABLE tool_calls ADD COLUMN output_bytes INTEGER
        GENERATED ALWAYS AS (length(CAST(output_text AS BLOB))) VIRTUAL""",
    """CREATE INDEX tool_calls_ended ON tool_calls (ended_at, name, status, duration_ms, output_bytes,
        conversation_id, assistant_message_id) WHERE ended_at IS NOT NULL""",
)


def add_statistics_indexes(connection: sqlite3.Connection) -> None:
    """Model calls by their start, ended tool calls by their end."""
    for statement in _STATEMENTS:
        connection.execute(statement)
