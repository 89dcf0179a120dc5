"""Usage and cost in words: of a conversation, a run (SPEC SDK-08) and many days; sizes in bytes."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine.machine.effects import Strategy
from engine.records.runs import CallGroup, CallPurpose, CallSum, ModelUsage, RunRecord, StatisticsGroup, ToolGroup
from phoenix_tui.text.agent_text import strategy_words
from phoenix_tui.text.labels import clock, money, short_path, tokens
from tools.clean import clean_line
from tools.wording import pluralize

PURPOSES: Final = {
    CallPurpose.REPLY: "replies",
    CallPurpose.COMPACTION: "summaries of older messages",
    CallPurpose.MEMORY: "notes before summaries",
    CallPurpose.ROUTING: "routing",
    CallPurpose.TITLE: "titles",
    CallPurpose.TURN_SUMMARY: "turn summaries",
    CallPurpose.SUGGESTION: "suggested messages",
    CallPurpose.ASIDE: "side questions (/btw)",
    CallPurpose.TRACKING: "task board",
    CallPurpose.WEB_SEARCH: "web searches",
    CallPurpose.WEB_PAGE: "answers about web pages",
    CallPurpose.SAMPLING: "MCP sampling",
    CallPurpose.EARLIER: "before calls were recorded separately",
}


def call_lines(sums: Sequence[CallSum]) -> list[str]:
    """A line for each purpose, and one about incomplete counts; nothing without calls."""
    lines = [_line(one) for one in sums]
    estimated = sum(one.estimated for one in sums)
    if estimated:
        told = (
            "was stopped or failed before the server reported" if estimated == 1 else "ended before the server reported"
        )
        lines.append(f"{pluralize(estimated, 'call')} {told} all tokens; the known part is counted.")
    return lines


def _line(one: CallSum) -> str:
    used = one.totals
    cached = used.cache_creation_tokens + used.cache_read_tokens
    facts = [
        f"{tokens(used.input_tokens)} in",
        f"{tokens(used.output_tokens)} out",
        *([f"{tokens(cached)} cached"] if cached else []),
        *([pluralize(one.web_searches, "search", "searches")] if one.web_searches else []),
        "price unknown" if used.cost_usd is None else money(used.cost_usd) or "$0.00",
    ]
    if one.purpose is CallPurpose.EARLIER:
        return f"{PURPOSES[one.purpose]}: {', '.join(facts)}"
    return f"{PURPOSES[one.purpose]}: {_count_calls(one)}, {', '.join(facts)}"


def _count_calls(one: CallSum | CallGroup) -> str:
    """Number of calls, and of those that ended otherwise than with an answer, or were retried."""
    apart = {"failed": one.failed, "stopped": one.cancelled, "retried": one.retries}
    words = ", ".join(f"{count:,} {kind}" for kind, count in apart.items() if count)
    return pluralize(one.calls, "call") + (f" ({words})" if words else "")


KILOBYTE: Final = 1_000
DIGITS: Final = 10
"""Sizes below it have a digit after the point."""


def size_in_words(count: int) -> str:
    """A number of bytes: 950 B, 4.2 KB, 84 KB, 1.2 MB."""
    size, unit = float(count), "B"
    for larger in ("KB", "MB", "GB"):
        if size < KILOBYTE:
            break
        size, unit = size / KILOBYTE, larger
    return f"{size:.1f} {unit}" if unit != "B" and size < DIGITS else f"{size:,.0f} {unit}"


EMPTY: Final = "No model was called in this time."
CALL_COLUMNS: Final = ("COST", "TOKENS", "IN", "OUT", "CACHED", "CALLS")
TOOL_COLUMNS: Final = ("CALLS", "ERRORS", "STOPPED", "TIME", "RESULTS")
RANGE_WORDS: Final = {1: "today", 365: "the last year", 0: "all time"}


class StatisticsRow(Struct, frozen=True):
    """One row: its name, its cells in the order of the columns, and its size for a bar."""

    name: str
    cells: tuple[str, ...]
    size: float


def range_words(days: int) -> str:
    return RANGE_WORDS.get(days, f"the last {days} days")


def call_rows(group: StatisticsGroup, rows: Sequence[CallGroup]) -> list[StatisticsRow]:
    """A row for each sum; bars show the cost, or the tokens where nothing has a known cost."""
    by_cost = shows_cost(rows)
    return [
        StatisticsRow(_name(group, row), _cells(row), row.known_cost_usd if by_cost else row.totals.tokens)
        for row in rows
    ]


def shows_cost(rows: Sequence[CallGroup]) -> bool:
    return any(row.known_cost_usd > 0 for row in rows)


def tool_rows(rows: Sequence[ToolGroup]) -> list[StatisticsRow]:
    return [
        StatisticsRow(
            clean_line(row.name) or "(no name)",
            (
                f"{row.calls:,}",
                f"{row.failed:,}",
                f"{row.stopped:,}",
                clock(row.duration_ms / 1000),
                size_in_words(row.result_bytes),
            ),
            row.calls,
        )
        for row in rows
    ]


def cost(group: CallGroup) -> str:
    """Cost of a sum: `$?` where a price is unknown, `~` where tokens are estimated."""
    amount = money(group.totals.cost_usd) or "$0.00"
    return f"~{amount}" if group.estimated and group.totals.cost_usd else amount


def token_count(group: CallGroup, count: int) -> str:
    return f"{'~' if group.estimated and count else ''}{tokens(count)}"


def headline(total: CallGroup, days: int) -> str:
    where, words = pluralize(total.conversations, "conversation"), range_words(days)
    if total.conversations > 1:
        where += " (sub-agents and archive counted)"
    used = f"{cost(total)}, {token_count(total, total.totals.tokens)} tokens"
    return f"{words[0].upper()}{words[1:]}: {used}, {_count_calls(total)} in {where}"


def token_line(total: CallGroup) -> str:
    used = total.totals
    return (
        f"{token_count(total, used.input_tokens)} in, {token_count(total, used.output_tokens)} out, "
        f"{token_count(total, used.cache_read_tokens)} read from cache, "
        f"{token_count(total, used.cache_creation_tokens)} written to it"
    )


def agents_line(total: CallGroup) -> str:
    """The part of sub-agents; empty without any."""
    if total.agents_cost_usd == 0:
        return ""
    return f"{money(total.agents_cost_usd)} of it by sub-agents"


def remarks(total: CallGroup) -> list[str]:
    """Sentences about what the sums do not know."""
    said: list[str] = []
    if total.unpriced:
        known = money(total.known_cost_usd) or "$0.00"
        said.append(
            f"$?: the price of {pluralize(total.unpriced, 'call')} is unknown; the others cost {known} together."
        )
    if total.estimated:
        ended = "call that" if total.estimated == 1 else "calls that"
        said.append(f"~: includes {total.estimated:,} {ended} ended before the server reported all tokens.")
    return said


def _name(group: StatisticsGroup, row: CallGroup) -> str:
    match group:
        case StatisticsGroup.DAY:
            try:
                return f"{row.key} {datetime.date.fromisoformat(row.key):%a}"
            except ValueError:
                return "unknown day"
        case StatisticsGroup.FOLDER:
            return clean_line(short_path(Path(row.key)))
        case StatisticsGroup.CONVERSATION:
            return clean_line(row.label) or "Untitled"
        case StatisticsGroup.PURPOSE:
            try:
                return PURPOSES[CallPurpose(row.key)]
            except ValueError:
                return clean_line(row.key)
        case StatisticsGroup.AGENT:
            return clean_line(row.key) or "general"
        case StatisticsGroup.MODEL:
            return clean_line(row.key) or "unknown model"


def _cells(row: CallGroup) -> tuple[str, ...]:
    used = row.totals
    cached = used.cache_read_tokens + used.cache_creation_tokens
    counts = (used.tokens, used.input_tokens, used.output_tokens, cached)
    return (cost(row), *(token_count(row, count) for count in counts), f"{row.calls:,}")


MOST_FILES: Final = 20
STATUSES: Final = {"success": "done", "failure": "failed", "timeout": "timed out"}
OUTCOMES: Final = {"alone": "you let the main model answer alone", "changed": "you changed it"}


class _Agent(Struct, rename="camel"):
    agent_name: str
    task_description: str


class _Decision(Struct):
    strategy: Strategy = Strategy.SINGLE
    agents: tuple[_Agent, ...] = ()
    reasoning: str = ""
    confidence: float = 0.0
    fallback: str = ""
    outcome: str = ""


def format_run_heading(run: RunRecord) -> str:
    how = STATUSES.get(run.status, run.status)
    return f"{how} · {clean_line(run.prompt) or 'a run without a message'}"


def run_lines(run: RunRecord) -> list[str]:
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at))
    took = f"took {clock(run.seconds)}" if run.status != "running" else "still running"
    kind = run.type.replace("_", " ")
    agents, used = run.agents, run.usage
    alone = "the main model alone"
    who = alone if run.strategy is Strategy.SINGLE else strategy_words(run.strategy, agents.count if agents else 1)
    cached = f", {tokens(used.cache_read_tokens)} from cache" if used.cache_read_tokens else ""
    lines = [
        format_run_heading(run),
        f"{began}, {took}, {pluralize(run.iterations, 'model call')}, kind {kind}",
        f"answered by: {who}",
        *_decision_lines(run),
        f"{tokens(used.input_tokens)} tokens in, {tokens(used.output_tokens)} out{cached}, {_price(run.cost_usd)}",
    ]
    if len(run.by_model) > 1:
        lines += [f"  {clean_line(one.model)}: {_of_model(one)}" for one in run.by_model]
    elif run.by_model:
        lines.append(f"model: {clean_line(run.by_model[0].model)}")
    if agents is not None:
        lines.append(
            f"its {pluralize(agents.count, 'sub-agent')}, in addition: {agents.succeeded} succeeded, "
            f"{tokens(agents.tokens)} tokens, {_price(agents.cost_usd)}"
        )
    written = dict.fromkeys((*run.artifacts, *(agents.artifacts if agents is not None else ())))
    lines.append(f"files written: {pluralize(len(written), 'file') if written else 'none'}")
    lines += [f"  {clean_line(path)}" for path in list(written)[:MOST_FILES]]
    if len(written) > MOST_FILES:
        lines.append(f"  and {len(written) - MOST_FILES} more")
    if run.error:
        lines.append(f"error: {clean_line(run.error)}")
    return lines


def _decision_lines(run: RunRecord) -> list[str]:
    if not run.decision_json:
        return []
    try:
        decision = msgspec.json.decode(run.decision_json, type=_Decision)
    except msgspec.DecodeError:
        return []
    if decision.fallback:
        return [f"the supervisor: {clean_line(decision.fallback)}"]
    words = strategy_words(decision.strategy, len(decision.agents))
    overruled = OUTCOMES.get(decision.outcome, "") if decision.agents else ""
    lines = [f"the supervisor: {words}, {decision.confidence:.0%} sure{f'; {overruled}' if overruled else ''}"]
    lines += [f"  {clean_line(one.agent_name)}: {clean_line(one.task_description)}" for one in decision.agents]
    if decision.reasoning:
        lines.append(f"  why: {clean_line(decision.reasoning)}")
    return lines


def _of_model(one: ModelUsage) -> str:
    used = one.usage
    calls = pluralize(one.requests, "call")
    return f"{calls}, {tokens(used.input_tokens)} in, {tokens(used.output_tokens)} out, {_price(one.cost_usd)}"


def _price(cost: float | None) -> str:
    return "price unknown" if cost is None else money(cost) or "$0.00"
