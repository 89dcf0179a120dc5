"""The tables `trace_queue` and `trace_export`: what ended and waits to be exported, and who exports it now."""

from __future__ import annotations

import sqlite3
from typing import Final

_RUN: Final = "INSERT INTO trace_queue (run_id) SELECT ? FROM trace_export"
_CALL: Final = "INSERT INTO trace_queue (run_id, call_id) SELECT ?, ? FROM trace_export"


def run_ended(connection: sqlite3.Connection, run_id: str) -> None:
    """Queue a run with all its spans; nothing is queued before the export was switched on once."""
    connection.execute(_RUN, (run_id,))


def call_ended(connection: sqlite3.Connection, run_id: str, call_id: str) -> None:
    """Queue one model call: it ended after its run, or was made beside runs."""
    connection.execute(_CALL, (run_id or None, call_id))
