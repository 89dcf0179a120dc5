"""The tables `traces` and `spans`: a span for each ended call of a model or a tool; trees of them (SPEC CLAW-80)."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from engine.codec import storable
from engine.machine.messages import Usage
from engine.machine.states import STATE_NAMES, AwaitingLlm
from engine.ports import RecordSpan
from engine.records.runs import INPUT_PREVIEW, PREVIEW, CallPurpose, ModelCall
from engine.records.traces import SpanContent, SpanKind, SpanStatus, Trace, TraceSpan, TraceSummary
from engine.store.connection import TableGroup, reads, reads_long
from tools.fresh_ids import fresh_id

STATUS: Final[Mapping[str, SpanStatus]] = {
    "success": SpanStatus.OK,
    "ok": SpanStatus.OK,
    "cancelled": SpanStatus.CANCELLED,
    "skipped": SpanStatus.CANCELLED,
    "running": SpanStatus.RUNNING,
    "queued": SpanStatus.RUNNING,
    "awaiting_approval": SpanStatus.RUNNING,
}
"""Statuses of runs, model calls and tool calls; all others are errors."""
_KINDS: Final[Mapping[str, SpanKind]] = {"llm": SpanKind.LLM, "aside": SpanKind.ASIDE}
"""Kinds of rows of model calls; a file that was imported may name others, such as `agent`, for a tool's."""


def parse_status(word: str) -> SpanStatus:
    """The outcome that a stored status means."""
    return STATUS.get(word, SpanStatus.ERROR)


def make_agent_span(
    row: sqlite3.Row, sums: sqlite3.Row | None, now: float, tools: Mapping[tuple[str, str], str]
) -> TraceSpan:
    """A run; that of a sub-agent hangs below the call that spawned it, `tools` names its span."""
    is_agent = row["kind"] == "subagent"
    return TraceSpan(
        id=row["id"],
        parent_id=tools.get((row["above"], row["tool_use_id"]), row["above"]),
        depth=0,
        kind=SpanKind.AGENT,
        name=row["profile"] or (row["title"] if is_agent else "") or "agent",
        status=parse_status(row["status"]),
        outcome=row["error_code"] or row["status"],
        conversation_id=row["conversation_id"],
        run_id=row["id"],
        started_at=row["started_at"],
        seconds=_count_seconds(row, now),
        usage=sum_usage(sums) if sums is not None else None,
        cost_usd=sums["cost_usd"] if sums is not None else 0.0,
        estimated=bool(sums is not None and sums["estimated"]),
        provider=row["model"].partition("/")[0],
        model=row["model"].partition("/")[2],
        error=row["error"],
        message_seq=row["seq"] or 0,
    )


def make_ended_span(row: sqlite3.Row) -> TraceSpan:
    """A row of `spans` with its row in `model_calls`, which a copied run lacks."""
    kind, counted = _KINDS.get(row["kind"], SpanKind.TOOL), row["call"] is not None
    is_llm = kind is not SpanKind.TOOL
    uncounted = Usage(row["span_input"], row["span_output"])
    return TraceSpan(
        id=row["id"],
        parent_id=row["run_id"],
        depth=0,
        kind=kind,
        name=row["name"],
        status=parse_status(row["status"]),
        outcome=row["status"],
        conversation_id=row["conversation_id"],
        run_id="" if kind is SpanKind.ASIDE else row["run_id"],
        started_at=row["started_at"],
        seconds=row["duration_ms"] / 1000,
        usage=None if not is_llm else sum_usage(row) if counted else uncounted,
        cost_usd=row["cost_usd"] if counted else None if is_llm else 0.0,
        estimated=bool(row["estimated"]),
        provider=row["provider"],
        model=row["model"],
        iteration=row["iteration"],
        attempt=row["attempt"] or 0,
        error=row["error"],
        output=row["output_preview"],
        tool_use_id=row["tool_use_id"],
        message_seq=row["seq"] or 0,
        purpose=row["purpose"] or "",
    )


def make_open_span(row: sqlite3.Row, now: float) -> TraceSpan:
    """A tool call that runs, or waits for an answer."""
    return TraceSpan(
        id=row["id"],
        parent_id=row["run_id"],
        depth=0,
        kind=SpanKind.TOOL,
        name=row["name"],
        status=SpanStatus.RUNNING,
        outcome=row["status"],
        conversation_id=row["conversation_id"],
        run_id=row["run_id"],
        started_at=row["started_at"],
        seconds=max(now - row["started_at"], 0.0),
        tool_use_id=row["tool_use_id"],
        message_seq=row["seq"] or 0,
    )


def make_pending_span(row: sqlite3.Row, now: float) -> TraceSpan:
    """The model call that a run waits for: it has no row before it ends, and began with the last move."""
    provider, _, model = row["model"].partition("/")
    return TraceSpan(
        id=f"{row['id']}/asked",
        parent_id=row["id"],
        depth=0,
        kind=SpanKind.LLM,
        name=model,
        status=SpanStatus.RUNNING,
        outcome="running",
        conversation_id=row["conversation_id"],
        run_id=row["id"],
        started_at=row["updated_at"],
        seconds=max(now - row["updated_at"], 0.0),
        provider=provider,
        model=model,
    )


def make_aside_span(row: sqlite3.Row) -> TraceSpan:
    """A model call beside runs, for the export: a tree of its own, whether or not a run came before it."""
    return TraceSpan(
        id=row["id"],
        parent_id="",
        depth=0,
        kind=SpanKind.ASIDE,
        name=row["purpose"],
        status=parse_status(row["status"]),
        outcome=row["status"],
        conversation_id=row["conversation_id"],
        run_id="",
        started_at=row["started_at"],
        seconds=row["duration_ms"] / 1000,
        usage=sum_usage(row),
        cost_usd=row["cost_usd"],
        estimated=bool(row["estimated"]),
        provider=row["provider"],
        model=row["model"],
        error=row["error"],
        output=row["output_preview"] or "",
        message_seq=row["seq"] or 0,
        purpose=row["purpose"],
    )


def make_summary(row: sqlite3.Row, sums: sqlite3.Row | None, now: float) -> TraceSummary:
    """A run in the list."""
    return TraceSummary(
        run_id=row["id"],
        prompt=(row["words"] or "").split("\n", 1)[0],
        status=parse_status(row["status"]),
        outcome=row["error_code"] or row["status"],
        started_at=row["started_at"],
        seconds=_count_seconds(row, now),
        llm_calls=row["llm_calls"],
        tool_calls=row["tool_calls"],
        errors=row["errors"],
        usage=sum_usage(sums) if sums is not None else Usage(),
        cost_usd=sums["cost_usd"] if sums is not None else 0.0,
        estimated=bool(sums is not None and sums["estimated"]),
    )


def sum_usage(row: sqlite3.Row) -> Usage:
    """The tokens and searches of a row, or of a sum of rows."""
    return Usage(
        row["input_tokens"],
        row["output_tokens"],
        row["cache_creation_tokens"],
        row["cache_read_tokens"],
        row["web_searches"],
    )


def _count_seconds(row: sqlite3.Row, now: float) -> float:
    began: float = row["started_at"]
    end: float = row["ended_at"] if row["ended_at"] is not None else now
    return max(end - began, 0.0)


FIRST_WORDS: Final = 200
"""Characters of a prompt that are read for a list of runs."""
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


def read_trace(connection: sqlite3.Connection, run_id: str, now: float) -> Trace | None:
    """The tree of a run, its first `MOST_SPANS` spans; None where there is no such run."""
    runs = connection.execute(_RUNS, (run_id, MOST_SPANS)).fetchall()
    if not runs:
        return None
    ids = json.dumps([row["id"] for row in runs])
    sums = {row["run_id"]: row for row in connection.execute(_SUMS, (ids,))}
    room = max(MOST_SPANS - len(runs), 0)
    rows = connection.execute(_SPANS, (ids, room)).fetchall()
    left_out = max(connection.execute(_COUNT, (ids,)).fetchone()[0] - room, 0)
    calls = [make_ended_span(row) for row in rows]
    calls += [make_open_span(row, now) for row in connection.execute(_OPEN, (ids, MOST_OPEN))]
    calls += [make_pending_span(row, now) for row in runs if row["status"] == "running" and row["state"] == ASKING]
    tools = {(one.run_id, one.tool_use_id): one.id for one in calls if one.kind is SpanKind.TOOL}
    agents = [make_agent_span(row, sums.get(row["id"]), now, tools) for row in runs]
    return Trace(_sort_spans(agents[0], [*agents[1:], *calls]), left_out)


def _sort_spans(root: TraceSpan, others: Iterable[TraceSpan]) -> tuple[TraceSpan, ...]:
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
        ordered.append(replace(span, depth=depth))
        children: Sequence[TraceSpan] = sorted(below.get(span.id, ()), key=_sort_key)
        waiting += [(child, depth + 1) for child in reversed(children)]
    return tuple(ordered)


def _sort_key(span: TraceSpan) -> tuple[bool, float]:
    return span.kind is SpanKind.ASIDE, span.started_at


_INSERT: Final = """INSERT INTO spans (id, name, iteration, provider, model, input_tokens, output_tokens, status,
    error, output_preview, input_preview, started_at, duration_ms, trace_id, kind)"""
_CALL_SPAN: Final = f"{_INSERT} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, id, 'llm' FROM traces WHERE run_id = ?"
_ASIDE_SPAN: Final = f"""{_INSERT} SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, id, 'aside'
    FROM traces WHERE id = COALESCE(
        (SELECT id FROM traces WHERE conversation_id = ?14 AND started_at <= ?12 ORDER BY rowid DESC LIMIT 1),
        (SELECT id FROM traces WHERE conversation_id = ?14 ORDER BY rowid DESC LIMIT 1))"""
"""The newest run that had begun when the call began; simply the newest where a clock was set back."""
_FILL_IN: Final = f"""WITH marks AS (
        SELECT conversation_id, started_at, 0 AS later, rowid AS run, NULL AS call FROM traces
        WHERE conversation_id = :id
        UNION ALL SELECT conversation_id, started_at, 1, NULL, rowid FROM model_calls
        WHERE run_id IS NULL AND purpose <> 'earlier' AND conversation_id = :id),
    placed AS (SELECT call, max(run) OVER (PARTITION BY conversation_id ORDER BY started_at, later
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS run FROM marks)
    {_INSERT} SELECT k.id, k.purpose, k.iteration, k.provider, k.model, k.input_tokens, k.output_tokens, k.status,
    k.error, '', '', k.started_at, k.duration_ms, c.id, 'aside'
    FROM placed AS p JOIN model_calls AS k ON k.rowid = p.call JOIN traces AS c ON c.rowid = p.run
    WHERE NOT EXISTS (SELECT 1 FROM spans WHERE id = k.id) ORDER BY k.rowid"""
"""One pass in the order of time: a search for each call would take hours with a file that was made for it."""
_TOOL_SPAN: Final = """INSERT INTO spans (id, trace_id, kind, name, iteration, status, error, output_preview,
    input_preview, started_at, duration_ms, tool_use_id) VALUES (?, ?, 'tool', ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_CUT_OFF_SPAN: Final = f"""INSERT INTO spans (id, trace_id, kind, name, iteration, status, error, output_preview,
    started_at, duration_ms, tool_use_id)
    SELECT ?, r.id, 'tool', t.name, r.iterations, t.status, substr(t.output_text, 1, {PREVIEW}),
    substr(t.output_text, 1, {PREVIEW}), COALESCE(t.started_at, ?3), 0, t.tool_use_id
    FROM tool_calls AS t JOIN runs AS r ON r.id = ?4 JOIN traces AS c ON c.id = r.id
    WHERE t.conversation_id = r.conversation_id AND t.tool_use_id = ?2"""


def add_call_span(connection: sqlite3.Connection, conversation_id: str, call: ModelCall) -> None:
    """Append the span of a model call, under the id of its row in `model_calls`."""
    connection.execute(
        _CALL_SPAN if call.run_id else _ASIDE_SPAN,
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


def add_tool_span(connection: sqlite3.Connection, span: RecordSpan, at: float) -> None:
    """Append the span of a tool call that ends now."""
    connection.execute(
        _TOOL_SPAN,
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


def add_interrupted_spans(
    connection: sqlite3.Connection, run_id: str, tool_use_ids: tuple[str, ...], at: float
) -> None:
    """Append the spans of calls that a crash ended; how long they ran is not known, so they have no duration."""
    connection.executemany(_CUT_OFF_SPAN, [(fresh_id(), one, at, run_id) for one in tool_use_ids])


def fill_in_aside_spans(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Give calls beside runs from before they had spans one without previews."""
    connection.execute(_FILL_IN, {"id": conversation_id})


MOST_LISTED: Final = 200
"""Runs in a list of traces."""


class SqliteTraces(TableGroup):
    """The traces of stored runs, those that run now included."""

    @reads_long
    def of_run(self, connection: sqlite3.Connection, run_id: str) -> Trace | None:
        """The tree of a run, its sub-agents included; None where there is no such run."""
        return read_trace(connection, run_id, time.time())

    @reads_long
    def of_conversation(
        self, connection: sqlite3.Connection, conversation_id: str, limit: int = MOST_LISTED
    ) -> list[TraceSummary]:
        """The newest runs of a conversation, newest first."""
        now = time.time()
        rows = connection.execute(_LIST, (conversation_id, FIRST_WORDS, limit)).fetchall()
        ids = json.dumps([row["id"] for row in rows])
        sums = {row["run_id"]: row for row in connection.execute(_SUMS, (ids,))}
        return [make_summary(row, sums.get(row["id"]), now) for row in rows]

    @reads
    def run_named(self, connection: sqlite3.Connection, reference: str) -> str:
        """The one run whose id is `reference` or begins with it (eight characters); empty for none or several."""
        if len(reference) < LEAST_ID:
            return ""
        found = connection.execute(_NAMED, (reference, f"{reference}\U0010ffff")).fetchall()
        return str(found[0]["run_id"]) if len(found) == 1 else ""

    @reads
    def content(self, connection: sqlite3.Connection, span: TraceSpan) -> SpanContent:
        """Stored input and output of a span of a trace."""
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
