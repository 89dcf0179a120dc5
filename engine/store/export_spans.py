"""Reading of ended runs and calls for the export."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.records.model_calls import PREVIEW
from engine.records.trace_export import ExportSpan
from engine.records.traces import SpanKind, TraceSpan
from engine.store import trace_rows
from engine.store.traces import DEEPEST, SPAN_COLUMNS, SPAN_TABLES

_RUN: Final = f"""SELECT r.id, r.conversation_id, r.status, '' AS error, r.error_code, r.started_at, r.ended_at,
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


class Reader:
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
        return [*found, *((row["place"], self._ended(row)) for row in rows.fetchall())]

    def _run(self, run_id: str) -> ExportSpan:
        row = self._connection.execute(_RUN, (run_id,)).fetchone()
        above = self._connection.execute(_ABOVE, (run_id,)).fetchone()
        parent = tool_key(above["parent_id"], above["spawn_tool_use_id"]) if above is not None else ""
        span = trace_rows.agent(row, None, row["started_at"], {})
        return ExportSpan(span, self._top(run_id), run_key(run_id), parent, span.name, row["words"] or "")

    def _call(self, run_id: str | None, call_id: str) -> list[tuple[int, ExportSpan]]:
        row = self._connection.execute(_ONE if run_id else _ASIDE, (call_id,)).fetchone()
        if row is None:  # its conversation was removed
            return []
        if run_id:
            return [(row["place"], self._ended(row))]
        return [(0, ExportSpan(trace_rows.aside(row), call_id, _key(SpanKind.ASIDE, call_id), ""))]

    def _ended(self, row: sqlite3.Row) -> ExportSpan:
        span = trace_rows.ended(row)
        top, parent = self._top(span.run_id), run_key(span.run_id)
        if span.kind is SpanKind.LLM:
            return ExportSpan(span, top, _key(span.kind, span.id), parent)
        return ExportSpan(span, top, _own_key(span), parent, input=row["input_json"] or "")

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


def run_key(run_id: str) -> str:
    """Key of a run's own span."""
    return _key(SpanKind.AGENT, run_id)


def tool_key(conversation_id: str, tool_use_id: str) -> str:
    """Key of a tool call's span: known while the call runs, so that its sub-agents can name it."""
    return _key(SpanKind.TOOL, f"{conversation_id}/{tool_use_id}")


def _own_key(span: TraceSpan) -> str:
    return tool_key(span.conversation_id, span.tool_use_id) if span.tool_use_id else _key(SpanKind.TOOL, span.id)


def _key(kind: SpanKind, row_id: str) -> str:
    return f"{kind.value}/{row_id}"
