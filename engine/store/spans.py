"""The table `spans`: one row for each call of a model or a tool that ended (SPEC CLAW-80).

The run itself is the root: its row in `runs` has its times and its end, so no span repeats them. A model call beside
runs is an aside, in the trace of the run before it; without any run it has no span.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.codec import storable
from engine.ports import RecordSpan
from engine.records.model_calls import PREVIEW, CallPurpose, ModelCall
from tools.fresh_ids import fresh_id

_COLUMNS: Final = """INSERT INTO spans (id, name, iteration, provider, model, input_tokens, output_tokens, status,
    error, output_preview, input_preview, started_at, duration_ms, trace_id, kind)"""
_CALL: Final = f"{_COLUMNS} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, id, 'llm' FROM traces WHERE run_id = ?"
_ASIDE: Final = f"""{_COLUMNS} SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, id, 'aside' FROM traces
    WHERE id = COALESCE(
        (SELECT id FROM traces WHERE conversation_id = ?14 AND started_at <= ?12 ORDER BY rowid DESC LIMIT 1),
        (SELECT id FROM traces WHERE conversation_id = ?14 ORDER BY rowid DESC LIMIT 1))"""
"""The newest run that had begun when the call began; simply the newest where a clock was set back."""
_FILL_IN: Final = f"""WITH marks AS (
        SELECT conversation_id, started_at, 0 AS later, rowid AS run, NULL AS call FROM traces
        WHERE :id = '' OR conversation_id = :id
        UNION ALL SELECT conversation_id, started_at, 1, NULL, rowid FROM model_calls
        WHERE run_id IS NULL AND purpose <> 'earlier' AND (:id = '' OR conversation_id = :id)),
    placed AS (SELECT call, max(run) OVER (PARTITION BY conversation_id ORDER BY started_at, later
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS run FROM marks)
    {_COLUMNS} SELECT k.id, k.purpose, k.iteration, k.provider, k.model, k.input_tokens, k.output_tokens, k.status,
    k.error, '', '', k.started_at, k.duration_ms, c.id, 'aside'
    FROM placed AS p JOIN model_calls AS k ON k.rowid = p.call JOIN traces AS c ON c.rowid = p.run
    WHERE NOT EXISTS (SELECT 1 FROM spans WHERE id = k.id) ORDER BY k.rowid"""
"""One pass in the order of time: a search for each call would take hours with a file that was made for it."""
_TOOL: Final = """INSERT INTO spans (id, trace_id, kind, name, iteration, status, error, output_preview, input_preview,
    started_at, duration_ms, tool_use_id) VALUES (?, ?, 'tool', ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INTERRUPTED: Final = f"""INSERT INTO spans (id, trace_id, kind, name, iteration, status, error, output_preview,
    started_at, duration_ms, tool_use_id)
    SELECT ?, r.id, 'tool', t.name, r.iterations, t.status, substr(t.output_text, 1, {PREVIEW}),
    substr(t.output_text, 1, {PREVIEW}), COALESCE(t.started_at, ?3), 0, t.tool_use_id
    FROM tool_calls AS t JOIN runs AS r ON r.id = ?4 JOIN traces AS c ON c.id = r.id
    WHERE t.conversation_id = r.conversation_id AND t.tool_use_id = ?2"""


def add_call(connection: sqlite3.Connection, conversation_id: str, call: ModelCall) -> None:
    """Append the span of a model call, under the id of its row in `model_calls`."""
    connection.execute(
        _CALL if call.run_id else _ASIDE,
        (
            call.id,
            storable(call.model) if call.purpose is CallPurpose.REPLY else call.purpose.value,
            call.iteration,
            call.provider,
            storable(call.model),
            call.usage.input_tokens,
            call.usage.output_tokens,
            call.status,
            call.error,
            storable(call.preview),
            storable(call.input_preview),
            call.started_at,
            call.duration_ms,
            call.run_id or conversation_id,
        ),
    )


def add_tool(connection: sqlite3.Connection, span: RecordSpan, at: float) -> None:
    """Append the span of a tool call that ends now."""
    connection.execute(
        _TOOL,
        (
            span.id,
            span.run_id,
            storable(span.name),
            span.iteration,
            span.status,
            storable(span.error),
            storable(span.output_preview),
            storable(span.input_preview),
            at - span.duration_ms / 1000,
            span.duration_ms,
            storable(span.tool_use_id),
        ),
    )


def add_interrupted(connection: sqlite3.Connection, run_id: str, tool_use_ids: tuple[str, ...], at: float) -> None:
    """Append the spans of calls that a crash ended; how long they ran is not known, so they have no duration."""
    connection.executemany(_INTERRUPTED, [(fresh_id(), one, at, run_id) for one in tool_use_ids])


def fill_in_asides(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Give calls beside runs from before they had spans one without previews; an empty id means every conversation."""
    connection.execute(_FILL_IN, {"id": conversation_id})
