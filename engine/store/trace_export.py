"""The queue of ended runs and calls for the OpenTelemetry export: the tables `trace_queue` and `trace_export`."""

from __future__ import annotations

import sqlite3
import time
from typing import Final, TypeAlias

from engine.codec import storable
from engine.records.runs import PREVIEW
from engine.records.traces import ExportSpan, RejectedSpans, SpanKind, TraceBatch, TraceSpan
from engine.store.connection import reads, writes
from engine.store.ownership import Instance, OwnedTables
from engine.store.traces import DEEPEST, SPAN_COLUMNS, SPAN_TABLES, make_agent_span, make_aside_span, make_ended_span

_RUN_SPAN: Final = f"""SELECT r.id, r.conversation_id, r.status, '' AS error, r.error_code, r.started_at, r.ended_at,
    '' AS tool_use_id, '' AS above, c.kind, c.profile, '' AS title, c.model, m.seq,
    substr(m.text, 1, {PREVIEW}) AS words
    FROM runs AS r JOIN conversations AS c ON c.id = r.conversation_id
    LEFT JOIN messages AS m ON m.id = r.trigger_message_id WHERE r.id = ?"""
_ABOVE: Final = """SELECT t.run_id, c.parent_id, c.spawn_tool_use_id FROM runs AS r
    JOIN conversations AS c ON c.id = r.conversation_id AND c.kind = 'subagent'
    JOIN tool_calls AS t ON t.conversation_id = c.parent_id AND t.tool_use_id = c.spawn_tool_use_id
    WHERE r.id = ? AND t.run_id IS NOT NULL"""
_INPUT: Final = f"substr(t.input_json, 1, {PREVIEW}) AS input_json"
_SPANS: Final = f"""{SPAN_COLUMNS}, {_INPUT} {SPAN_TABLES} WHERE r.id = ?1 AND s.rowid > ?2 AND s.kind <> 'aside'
    AND s.id NOT IN (SELECT call_id FROM trace_queue WHERE run_id = ?1 AND call_id IS NOT NULL)
    ORDER BY s.rowid LIMIT ?3"""
_ONE: Final = f"{SPAN_COLUMNS}, {_INPUT} {SPAN_TABLES} WHERE s.id = ?"
_ASIDE: Final = """SELECT k.*, m.seq, s.output_preview FROM model_calls AS k
    LEFT JOIN messages AS m ON m.id = k.message_id LEFT JOIN spans AS s ON s.id = k.id WHERE k.id = ?"""
"""One without a run before it has no span."""


class SpanReader:
    """Reads the spans of queue entries; knows the top of each tree it has seen."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tops: dict[str, str] = {}

    def spans_of(self, entry: sqlite3.Row, after: int, limit: int) -> list[tuple[int, ExportSpan]]:
        """The spans of one entry behind the place `after`, with their places; the run itself has place 0."""
        if entry["call_id"] is not None:
            return self._call(entry["run_id"], entry["call_id"])
        found = [(0, self._run(entry["run_id"]))] if after < 0 else []
        rows = self._connection.execute(_SPANS, (entry["run_id"], after, max(limit - len(found), 0)))
        return [*found, *((row["place"], self._make_ended(row)) for row in rows.fetchall())]

    def _run(self, run_id: str) -> ExportSpan:
        row = self._connection.execute(_RUN_SPAN, (run_id,)).fetchone()
        above = self._connection.execute(_ABOVE, (run_id,)).fetchone()
        parent = make_tool_key(above["parent_id"], above["spawn_tool_use_id"]) if above is not None else ""
        span = make_agent_span(row, None, row["started_at"], {})
        return ExportSpan(span, self._top(run_id), make_run_key(run_id), parent, span.name, row["words"] or "")

    def _call(self, run_id: str | None, call_id: str) -> list[tuple[int, ExportSpan]]:
        row = self._connection.execute(_ONE if run_id else _ASIDE, (call_id,)).fetchone()
        if row is None:  # its conversation was removed
            return []
        if run_id:
            return [(row["place"], self._make_ended(row))]
        return [(0, ExportSpan(make_aside_span(row), call_id, _make_key(SpanKind.ASIDE, call_id), ""))]

    def _make_ended(self, row: sqlite3.Row) -> ExportSpan:
        span = make_ended_span(row)
        top, parent = self._top(span.run_id), make_run_key(span.run_id)
        if span.kind is SpanKind.LLM:
            return ExportSpan(span, top, _make_key(span.kind, span.id), parent)
        return ExportSpan(span, top, _make_own_key(span), parent, input=row["input_json"] or "")

    def _top(self, run_id: str) -> str:
        """The run at the top of the tree of a run."""
        if run_id not in self._tops:
            top = run_id
            for _ in range(DEEPEST):
                above = self._connection.execute(_ABOVE, (top,)).fetchone()
                if above is None:
                    break
                top = above["run_id"]
            self._tops[run_id] = top
        return self._tops[run_id]


def make_run_key(run_id: str) -> str:
    """Key of a run's own span."""
    return _make_key(SpanKind.AGENT, run_id)


def make_tool_key(conversation_id: str, tool_use_id: str) -> str:
    """Key of a tool call's span: known while the call runs, so that its sub-agents can name it."""
    return _make_key(SpanKind.TOOL, f"{conversation_id}/{tool_use_id}")


def _make_own_key(span: TraceSpan) -> str:
    return (
        make_tool_key(span.conversation_id, span.tool_use_id) if span.tool_use_id else _make_key(SpanKind.TOOL, span.id)
    )


def _make_key(kind: SpanKind, row_id: str) -> str:
    return f"{kind.value}/{row_id}"


ENTRIES: Final = 256
"""Entries of the queue that one batch looks at."""
QueuePlace: TypeAlias = tuple[int, int]
"""Number of the entry that was sent in part, 0 for none, and the place of its last span that was sent."""
_QUEUE_RUN: Final = """INSERT INTO trace_queue (run_id) SELECT r.id FROM trace_export JOIN runs AS r
    WHERE r.id = ? AND r.status = 'running'"""
_QUEUE_LATE_TOOL: Final = """INSERT INTO trace_queue (run_id, call_id) SELECT r.id, ? FROM trace_export JOIN runs AS r
    WHERE r.id = ? AND r.status <> 'running'"""
_QUEUE_LATE_CALL: Final = "INSERT INTO trace_queue (run_id, call_id) SELECT ?, ? FROM trace_export"


def queue_run(connection: sqlite3.Connection, run_id: str) -> None:
    """Queue a run that ends in this transaction; nothing is queued before the export was switched on once."""
    connection.execute(_QUEUE_RUN, (run_id,))


def queue_late_tool(connection: sqlite3.Connection, run_id: str, span_id: str) -> None:
    """Queue the span of a tool call that ended after its run; all others are queued with the run."""
    connection.execute(_QUEUE_LATE_TOOL, (span_id, run_id))


def queue_late_call(connection: sqlite3.Connection, run_id: str, call_id: str) -> None:
    """Queue one model call: it ended after its run, or was made beside runs."""
    connection.execute(_QUEUE_LATE_CALL, (run_id or None, call_id))


def claim_queue(connection: sqlite3.Connection, instance: Instance, at: float) -> QueuePlace | None:
    """Make this process the one that exports; returns the place that is reached, None while another one exports."""
    row = connection.execute("SELECT owner, seq, sent FROM trace_export").fetchone()
    if row is None or (row["owner"] != instance.id and instance.living_pid(connection, row["owner"]) is not None):
        return None
    instance.register(connection, at)
    connection.execute("UPDATE trace_export SET owner = ?", (instance.id,))
    return row["seq"], row["sent"]


def read_batch(connection: sqlite3.Connection, place: QueuePlace, limit: int) -> TraceBatch | None:
    """The spans behind a place, at most `limit`; None where nothing is queued."""
    entries = connection.execute("SELECT * FROM trace_queue ORDER BY seq LIMIT ?", (ENTRIES,)).fetchall()
    partial, sent = place
    found: list[ExportSpan] = []
    done = 0
    reader = SpanReader(connection)
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


class TraceQueue(OwnedTables):
    """The queue of ended spans; one process at a time takes from it."""

    @writes
    def open(self, connection: sqlite3.Connection) -> None:
        """Let everything that ends from now on be queued; earlier runs are not exported."""
        connection.execute("INSERT OR IGNORE INTO trace_export (id, sent) VALUES (1, -1)")

    @reads
    def waiting(self, connection: sqlite3.Connection) -> bool:
        """True while something is queued."""
        return connection.execute("SELECT 1 FROM trace_queue LIMIT 1").fetchone() is not None

    async def claim(self, limit: int) -> TraceBatch | None:
        """The next spans, at most `limit`; until they are settled no other process gets any. None: there are none, or
        another living process sends.
        """
        place = await self.transactions.write(lambda connection: claim_queue(connection, self._instance, time.time()))
        if place is None:
            return None
        batch: TraceBatch | None = None
        try:  # read beside the connection that moves are written on
            batch = await self.transactions.look(lambda connection: read_batch(connection, place, limit))
        finally:
            if batch is None:
                await self.give_back()
        return batch

    @writes
    def settle(self, connection: sqlite3.Connection, batch: TraceBatch, rejected: RejectedSpans) -> None:
        """Remove what was delivered, and count what the collector did not take of it."""
        settled = connection.execute(
            "UPDATE trace_export SET owner = NULL, seq = ?, sent = ? WHERE owner = ?",
            (batch.partial, batch.sent, self._instance.id),
        )
        if settled.rowcount and rejected.count:
            connection.execute(
                "UPDATE trace_export SET rejected = rejected + ?, rejected_why = ?",
                (rejected.count, storable(rejected.why)),
            )
        if settled.rowcount:
            connection.execute("DELETE FROM trace_queue WHERE seq <= ?", (batch.done,))

    @writes
    def give_back(self, connection: sqlite3.Connection) -> None:
        """End the claim: nothing was delivered."""
        connection.execute("UPDATE trace_export SET owner = NULL WHERE owner = ?", (self._instance.id,))
