"""Migrations of the tables of traces: which call a span is of, and the queue of the OpenTelemetry export."""

from __future__ import annotations

import sqlite3
from typing import Final

_STATEMENTS: Final = (
    "ALTER TABLE spans ADD COLUMN tool_use_id TEXT NOT NULL DEFAULT ''",
    """CREATE TABLE trace_queue (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT REFERENCES runs ON DELETE CASCADE,
        call_id TEXT)""",
    "CREATE INDEX trace_queue_run ON trace_queue (run_id)",
    """CREATE TABLE trace_export (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        owner TEXT,
        seq INTEGER NOT NULL DEFAULT 0,
        sent INTEGER NOT NULL DEFAULT 0)""",
)


def add_trace_columns(connection: sqlite3.Connection) -> None:
    """`trace_queue` has a row for each end that is to be exported; it is written while `trace_export` has its row."""
    for statement in _STATEMENTS:
        connection.execute(statement)


def add_rejected_spans(connection: sqlite3.Connection) -> None:
    """`trace_export` counts the spans that the collector did not take, with the reason of the newest."""
    connection.execute("ALTER TABLE trace_export ADD COLUMN rejected INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE trace_export ADD COLUMN rejected_why TEXT NOT NULL DEFAULT ''")
