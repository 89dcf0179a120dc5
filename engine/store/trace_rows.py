"""Rows of the database as spans of a trace."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from engine.machine.messages import Usage
from engine.records.traces import SpanKind, SpanStatus, TraceSpan, TraceSummary

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


def status_of(word: str) -> SpanStatus:
    """The outcome that a stored status means."""
    return STATUS.get(word, SpanStatus.ERROR)


def agent(row: sqlite3.Row, sums: sqlite3.Row | None, now: float, tools: Mapping[tuple[str, str], str]) -> TraceSpan:
    """A run; that of a sub-agent hangs below the call that spawned it, `tools` names its span."""
    is_agent = row["kind"] == "subagent"
    return TraceSpan(
        id=row["id"],
        parent_id=tools.get((row["above"], row["tool_use_id"]), row["above"]),
        depth=0,
        kind=SpanKind.AGENT,
        name=row["profile"] or (row["title"] if is_agent else "") or "agent",
        status=status_of(row["status"]),
        outcome=row["error_code"] or row["status"],
        conversation_id=row["conversation_id"],
        run_id=row["id"],
        started_at=row["started_at"],
        seconds=_seconds(row, now),
        usage=usage_of(sums) if sums is not None else None,
        cost_usd=sums["cost_usd"] if sums is not None else 0.0,
        estimated=bool(sums is not None and sums["estimated"]),
        provider=row["model"].partition("/")[0],
        model=row["model"].partition("/")[2],
        error=row["error"],
        message_seq=row["seq"] or 0,
    )


def ended(row: sqlite3.Row) -> TraceSpan:
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
        status=status_of(row["status"]),
        outcome=row["status"],
        conversation_id=row["conversation_id"],
        run_id="" if kind is SpanKind.ASIDE else row["run_id"],
        started_at=row["started_at"],
        seconds=row["duration_ms"] / 1000,
        usage=None if not is_llm else usage_of(row) if counted else uncounted,
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


def under_way(row: sqlite3.Row, now: float) -> TraceSpan:
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


def asked(row: sqlite3.Row, now: float) -> TraceSpan:
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


def aside(row: sqlite3.Row) -> TraceSpan:
    """A model call beside runs, for the export: a tree of its own, whether or not a run came before it."""
    return TraceSpan(
        id=row["id"],
        parent_id="",
        depth=0,
        kind=SpanKind.ASIDE,
        name=row["purpose"],
        status=status_of(row["status"]),
        outcome=row["status"],
        conversation_id=row["conversation_id"],
        run_id="",
        started_at=row["started_at"],
        seconds=row["duration_ms"] / 1000,
        usage=usage_of(row),
        cost_usd=row["cost_usd"],
        estimated=bool(row["estimated"]),
        provider=row["provider"],
        model=row["model"],
        error=row["error"],
        output=row["output_preview"] or "",
        message_seq=row["seq"] or 0,
        purpose=row["purpose"],
    )


def summary(row: sqlite3.Row, sums: sqlite3.Row | None, now: float) -> TraceSummary:
    """A run in the list."""
    return TraceSummary(
        run_id=row["id"],
        prompt=(row["words"] or "").split("\n", 1)[0],
        status=status_of(row["status"]),
        outcome=row["error_code"] or row["status"],
        started_at=row["started_at"],
        seconds=_seconds(row, now),
        llm_calls=row["llm_calls"],
        tool_calls=row["tool_calls"],
        errors=row["errors"],
        usage=usage_of(sums) if sums is not None else Usage(),
        cost_usd=sums["cost_usd"] if sums is not None else 0.0,
        estimated=bool(sums is not None and sums["estimated"]),
    )


def placed(span: TraceSpan, depth: int) -> TraceSpan:
    """The span at its place in the tree."""
    return replace(span, depth=depth)


def usage_of(row: sqlite3.Row) -> Usage:
    """The tokens and searches of a row, or of a sum of rows."""
    return Usage(
        row["input_tokens"],
        row["output_tokens"],
        row["cache_creation_tokens"],
        row["cache_read_tokens"],
        row["web_searches"],
    )


def _seconds(row: sqlite3.Row, now: float) -> float:
    began: float = row["started_at"]
    end: float = row["ended_at"] if row["ended_at"] is not None else now
    return max(end - began, 0.0)
