"""The tables `trace_queue` and `trace_export`: what ended and waits to be exported, and who exports it now."""

from __future__ import annotations

import sqlite3
from typing import Final, TypeAlias

from engine.codec import storable
from engine.records.trace_export import ExportSpan, RejectedSpans, TraceBatch
from engine.store import export_spans
from engine.store.ownership import Instance

ENTRIES: Final = 256
"""Entries of the queue that one batch looks at."""
QueuePlace: TypeAlias = tuple[int, int]
"""Number of the entry that was sent in part, 0 for none, and the place of its last span that was sent."""
_RUN: Final = """INSERT INTO trace_queue (run_id) SELECT r.id FROM trace_export JOIN runs AS r
    WHERE r.id = ? AND r.status = 'running'"""
_LATE: Final = """INSERT INTO trace_queue (run_id, call_id) SELECT r.id, ? FROM trace_export JOIN runs AS r
    WHERE r.id = ? AND r.status <> 'running'"""
_CALL: Final = "INSERT INTO trace_queue (run_id, call_id) SELECT ?, ? FROM trace_export"


def run_ends(connection: sqlite3.Connection, run_id: str) -> None:
    """Queue a run that ends in this transaction; nothing is queued before the export was switched on once."""
    connection.execute(_RUN, (run_id,))


def tool_ended(connection: sqlite3.Connection, run_id: str, span_id: str) -> None:
    """Queue the span of a tool call that ended after its run; all others are queued with the run."""
    connection.execute(_LATE, (span_id, run_id))


def call_ended(connection: sqlite3.Connection, run_id: str, call_id: str) -> None:
    """Queue one model call: it ended after its run, or was made beside runs."""
    connection.execute(_CALL, (run_id or None, call_id))


def open_queue(connection: sqlite3.Connection) -> None:
    """Let ends be queued."""
    connection.execute("INSERT OR IGNORE INTO trace_export (id, sent) VALUES (1, -1)")


def waits(connection: sqlite3.Connection) -> bool:
    """True while something is queued."""
    return connection.execute("SELECT 1 FROM trace_queue LIMIT 1").fetchone() is not None


def claim(connection: sqlite3.Connection, instance: Instance, at: float) -> QueuePlace | None:
    """Make this process the one that exports; returns the place that is reached, None while another one exports."""
    row = connection.execute("SELECT owner, seq, sent FROM trace_export").fetchone()
    if row is None or (row["owner"] != instance.id and instance.living_pid(connection, row["owner"]) is not None):
        return None
    instance.register(connection, at)
    connection.execute("UPDATE trace_export SET owner = ?", (instance.id,))
    return row["seq"], row["sent"]


def next_batch(connection: sqlite3.Connection, place: QueuePlace, limit: int) -> TraceBatch | None:
    """The spans behind a place, at most `limit`; None where nothing is queued."""
    entries = connection.execute("SELECT * FROM trace_queue ORDER BY seq LIMIT ?", (ENTRIES,)).fetchall()
    partial, sent = place
    found: list[ExportSpan] = []
    done = 0
    reader = export_spans.Reader(connection)
    for entry in entries:
        after = sent if entry["seq"] == partial else -1
        room = limit - len(found)
        spans = reader.spans_of(entry, after, room + 1)
        if len(spans) > room:
            found += [span for _, span in spans[:room]]
            return TraceBatch(tuple(found), done, entry["seq"], spans[room - 1][0] if room else after)
        found += [span for _, span in spans]
        done = entry["seq"]
    return TraceBatch(tuple(found), done) if entries else None


def settle(connection: sqlite3.Connection, instance: Instance, batch: TraceBatch, rejected: RejectedSpans) -> None:
    """Remove delivered entries, and add up rejected spans; one whose claim is gone changes nothing."""
    settled = connection.execute(
        "UPDATE trace_export SET owner = NULL, seq = ?, sent = ? WHERE owner = ?",
        (batch.partial, batch.sent, instance.id),
    )
    if settled.rowcount and rejected.count:
        connection.execute(
            "UPDATE trace_export SET rejected = rejected + ?, rejected_why = ?",
            (rejected.count, storable(rejected.why)),
        )
    if settled.rowcount:
        connection.execute("DELETE FROM trace_queue WHERE seq <= ?", (batch.done,))


def give_back(connection: sqlite3.Connection, instance: Instance) -> None:
    """End the claim of this process."""
    connection.execute("UPDATE trace_export SET owner = NULL WHERE owner = ?", (instance.id,))
