"""The table `spans`: one row for each call of a model or a tool that ended in a run (SPEC CLAW-80).

The run itself is the root: its row in `runs` has its times and its end, so no span repeats them.
"""

from __future__ import annotations

import sqlite3
from typing import Final
from uuid import uuid4

from engine.codec import storable
from engine.ports import RecordSpan
from engine.records.model_calls import PREVIEW, CallPurpose, ModelCall

_CALL: Final = """INSERT INTO spans (id, trace_id, kind, name, iteration, provider, model, input_tokens, output_tokens,
    status, error, output_preview, input_preview, started_at, duration_ms)
    SELECT ?, id, 'llm', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM traces WHERE run_id = ?"""
_TOOL: Final = """INSERT INTO spans (id, trace_id, kind, name, iteration, status, error, output_preview, input_preview,
    started_at, duration_ms, tool_use_id) VALUES (?, ?, 'tool', ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INTERRUPTED: Final = f"""INSERT INTO spans (id, trace_id, kind, name, iteration, status, error, output_preview,
    started_at, duration_ms, tool_use_id)
    SELECT ?, r.id, 'tool', t.name, r.iterations, t.status, substr(t.output_text, 1, {PREVIEW}),
    substr(t.output_text, 1, {PREVIEW}), COALESCE(t.started_at, ?3), 0, t.tool_use_id
    FROM tool_calls AS t JOIN runs AS r ON r.id = ?4 JOIN traces AS c ON c.id = r.id
    WHERE t.conversation_id = r.conversation_id AND t.tool_use_id = ?2"""


def add_call(connection: sqlite3.Connection, call: ModelCall) -> None:
    """Append the span of a model call, under the id of its row in `model_calls`."""
    connection.execute(
        _CALL,
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
            call.run_id,
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
    connection.executemany(_INTERRUPTED, [(str(uuid4()), one, at, run_id) for one in tool_use_ids])
