"""Reading of traces: the tree of a run in a bounded number of queries (SPEC CLAW-80)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from engine.machine.states import STATE_NAMES, AwaitingLlm
from engine.records.model_calls import INPUT_PREVIEW
from engine.records.traces import SpanContent, SpanKind, Trace, TraceSpan, TraceSummary
from engine.store import trace_rows
from engine.store.run_records import FIRST_WORDS

MOST_SPANS: Final = 2_000
"""Spans that one tree shows."""
MOST_OPEN: Final = 100
"""Calls under way that one tree shows."""
DEEPEST: Final = 8
"""Levels of sub-agents; today's engine has two."""
ASKING: Final = STATE_NAMES[AwaitingLlm]
LEAST_ID: Final = 8
"""Characters of an id that name a run."""

_RUNS: Final = f"""WITH RECURSIVE below (run_id, conversation_id, tool_use_id, above, depth) AS (
    SELECT r.id, r.conversation_id, '', '', 0 FROM runs AS r JOIN traces AS c ON c.run_id = r.id WHERE r.id = ?1
    UNION ALL
    SELECT r.id, c.id, c.spawn_tool_use_id, b.run_id, b.depth + 1
    FROM below AS b CROSS JOIN conversations AS c ON c.parent_id = b.conversation_id AND c.kind = 'subagent'
    CROSS JOIN tool_calls AS t ON t.conversation_id = b.conversation_id AND t.tool_use_id = c.spawn_tool_use_id
        AND t.run_id = b.run_id
    CROSS JOIN runs AS r ON r.conversation_id = c.id WHERE b.depth < {DEEPEST})
    SELECT r.id, r.conversation_id, r.status, r.error, r.error_code, r.started_at, r.ended_at, b.tool_use_id, b.above,
        c.kind, c.profile, c.title, c.model, c.state, c.updated_at, m.seq
    FROM below AS b JOIN runs AS r ON r.id = b.run_id JOIN conversations AS c ON c.id = r.conversation_id
    LEFT JOIN messages AS m ON m.id = r.trigger_message_id LIMIT ?2"""
_SUMS: Final = """SELECT run_id, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_creation_tokens) AS cache_creation_tokens, sum(cache_read_tokens) AS cache_read_tokens,
    sum(web_searches) AS web_searches,
    CASE WHEN count(*) = count(cost_usd) THEN sum(cost_usd) END AS cost_usd, max(estimated) AS estimated
    FROM model_calls WHERE run_id IN (SELECT value FROM json_each(?)) GROUP BY run_id"""
_FROM_SPANS: Final = """FROM spans AS s JOIN traces AS c ON c.id = s.trace_id JOIN runs AS r ON r.id = c.run_id"""
SPAN_COLUMNS: Final = """SELECT s.rowid AS place, s.id, s.kind, s.name, s.status, s.error, s.output_preview,
    s.started_at, s.duration_ms, s.iteration, s.provider, s.model, s.tool_use_id, s.input_tokens AS span_input,
    s.output_tokens AS span_output, r.id AS run_id, r.conversation_id, k.id AS call, k.input_tokens, k.output_tokens,
    k.cache_creation_tokens, k.cache_read_tokens, k.web_searches, k.cost_usd, k.estimated, k.attempt, k.purpose,
    m.seq"""
SPAN_TABLES: Final = f"""{_FROM_SPANS} LEFT JOIN model_calls AS k ON k.id = s.id
    LEFT JOIN tool_calls AS t ON s.tool_use_id <> '' AND t.conversation_id = r.conversation_id
        AND t.tool_use_id = s.tool_use_id
    LEFT JOIN messages AS m ON m.id = COALESCE(k.message_id, t.assistant_message_id)"""
_SPANS: Final = f"""{SPAN_COLUMNS} {SPAN_TABLES} WHERE r.id IN (SELECT value FROM json_each(?))
    ORDER BY s.started_at, s.rowid LIMIT ?"""
_COUNT: Final = f"SELECT count(*) {_FROM_SPANS} WHERE r.id IN (SELECT value FROM json_each(?))"
_OPEN: Final = """SELECT t.id, t.name, t.status, t.tool_use_id, t.run_id, t.conversation_id, m.seq,
    COALESCE(t.started_at, m.created_at) AS started_at
    FROM tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id JOIN runs AS r ON r.id = t.run_id
    WHERE r.id IN (SELECT value FROM json_each(?)) AND r.status = 'running'
    AND t.status IN ('awaiting_approval', 'running') LIMIT ?"""
_LIST: Final = """SELECT r.id, r.status, r.error_code, r.started_at, r.ended_at,
    substr(ltrim(m.text, char(10, 13, 32, 9)), 1, ?2) AS words,
    (SELECT count(*) FROM model_calls WHERE run_id = r.id) AS llm_calls,
    (SELECT count(*) FROM tool_calls WHERE conversation_id = ?1 AND run_id = r.id) AS tool_calls,
    (SELECT count(*) FROM model_calls WHERE run_id = r.id AND status = 'failed')
        + (SELECT count(*) FROM tool_calls WHERE conversation_id = ?1 AND run_id = r.id
            AND status IN ('error', 'interrupted')) AS errors
    FROM runs AS r JOIN traces AS c ON c.run_id = r.id LEFT JOIN messages AS m ON m.id = r.trigger_message_id
    WHERE r.conversation_id = ?1 ORDER BY r.rowid DESC LIMIT ?3"""
_NAMED: Final = "SELECT run_id FROM traces WHERE run_id >= ? AND run_id < ? LIMIT 2"
_TOOL: Final = """SELECT substr(input_json, 1, ?1) AS input, substr(output_text, 1, ?1) AS output FROM tool_calls
    WHERE conversation_id = ?2 AND tool_use_id = ?3"""
_LLM: Final = """SELECT substr(s.input_preview, 1, ?1) AS input,
    substr(COALESCE(NULLIF(m.text, ''), s.output_preview), 1, ?1) AS output FROM spans AS s
    LEFT JOIN model_calls AS k ON k.id = s.id LEFT JOIN messages AS m ON m.id = k.message_id WHERE s.id = ?2"""
_AGENT: Final = """SELECT substr((SELECT text FROM messages WHERE id = r.trigger_message_id), 1, ?1) AS input,
    substr((SELECT text FROM messages WHERE run_id = r.id AND role = 'assistant' ORDER BY seq DESC LIMIT 1), 1, ?1)
    AS output FROM runs AS r WHERE r.id = ?2"""


def read(connection: sqlite3.Connection, run_id: str, now: float, limit: int = MOST_SPANS) -> Trace | None:
    """The tree of a run, its first `limit` spans; None where there is no such run."""
    runs = connection.execute(_RUNS, (run_id, limit)).fetchall()
    if not runs:
        return None
    ids = json.dumps([row["id"] for row in runs])
    sums = {row["run_id"]: row for row in connection.execute(_SUMS, (ids,))}
    room = max(limit - len(runs), 0)
    rows = connection.execute(_SPANS, (ids, room)).fetchall()
    left_out = max(connection.execute(_COUNT, (ids,)).fetchone()[0] - room, 0)
    calls = [trace_rows.ended(row) for row in rows]
    calls += [trace_rows.under_way(row, now) for row in connection.execute(_OPEN, (ids, MOST_OPEN))]
    calls += [trace_rows.asked(row, now) for row in runs if row["status"] == "running" and row["state"] == ASKING]
    tools = {(one.run_id, one.tool_use_id): one.id for one in calls if one.kind is SpanKind.TOOL}
    agents = [trace_rows.agent(row, sums.get(row["id"]), now, tools) for row in runs]
    return Trace(_in_order(agents[0], [*agents[1:], *calls]), left_out)


def listed(connection: sqlite3.Connection, conversation_id: str, now: float, limit: int) -> list[TraceSummary]:
    """The newest runs of a conversation, newest first; runs that a fork shares with its source are the source's."""
    rows = connection.execute(_LIST, (conversation_id, FIRST_WORDS, limit)).fetchall()
    ids = json.dumps([row["id"] for row in rows])
    sums = {row["run_id"]: row for row in connection.execute(_SUMS, (ids,))}
    return [trace_rows.summary(row, sums.get(row["id"]), now) for row in rows]


def run_named(connection: sqlite3.Connection, reference: str) -> str:
    """The one run whose id is `reference` or begins with it; empty for none or several."""
    if len(reference) < LEAST_ID:
        return ""
    found = connection.execute(_NAMED, (reference, f"{reference}\U0010ffff")).fetchall()
    return str(found[0]["run_id"]) if len(found) == 1 else ""


def content(connection: sqlite3.Connection, span: TraceSpan) -> SpanContent:
    """Stored input and output of a span; empty where nothing is stored any more."""
    match span.kind:
        case SpanKind.TOOL:
            found = connection.execute(_TOOL, (INPUT_PREVIEW, span.conversation_id, span.tool_use_id)).fetchone()
        case SpanKind.AGENT:
            found = connection.execute(_AGENT, (INPUT_PREVIEW, span.id)).fetchone()
        case SpanKind.LLM | SpanKind.ASIDE:
            found = connection.execute(_LLM, (INPUT_PREVIEW, span.id)).fetchone()
    if found is None:
        return SpanContent("", span.output)
    return SpanContent(found["input"] or "", found["output"] or span.output)


def _in_order(root: TraceSpan, others: Iterable[TraceSpan]) -> tuple[TraceSpan, ...]:
    """Depth first, children by their start; one whose parent was left out hangs below the root."""
    members = list(others)
    known = {root.id, *(one.id for one in members)}
    below: dict[str, list[TraceSpan]] = {}
    for one in members:
        below.setdefault(one.parent_id if one.parent_id in known else root.id, []).append(one)
    ordered: list[TraceSpan] = []
    waiting = [(root, 0)]
    while waiting:
        span, depth = waiting.pop()
        ordered.append(trace_rows.placed(span, depth))
        children: Sequence[TraceSpan] = sorted(below.get(span.id, ()), key=_start)
        waiting += [(child, depth + 1) for child in reversed(children)]
    return tuple(ordered)


def _start(span: TraceSpan) -> tuple[bool, float]:
    return span.kind is SpanKind.ASIDE, span.started_at
