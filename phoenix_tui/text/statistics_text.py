"""Sums of model calls and tool calls in words and columns; `~` marks what a provider did not count."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.records.model_calls import CallPurpose
from engine.records.statistics import CallGroup, StatisticsGroup, ToolGroup
from phoenix_tui.text.byte_sizes import size_in_words
from phoenix_tui.text.cost_text import PURPOSES
from phoenix_tui.text.labels import clock, money, tokens
from phoenix_tui.text.shown_paths import short_path
from tools.clean import clean_line
from tools.wording import counted

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
    """A range of days: `the last 30 days`."""
    return RANGE_WORDS.get(days, f"the last {days} days")


def call_rows(group: StatisticsGroup, rows: Sequence[CallGroup]) -> list[StatisticsRow]:
    """A row for each sum; bars show the cost, or the tokens where nothing has a known cost."""
    by_cost = shows_cost(rows)
    return [
        StatisticsRow(_name(group, row), _cells(row), row.known_cost_usd if by_cost else row.totals.tokens)
        for row in rows
    ]


def shows_cost(rows: Sequence[CallGroup]) -> bool:
    """True where bars show the cost: something has one."""
    return any(row.known_cost_usd > 0 for row in rows)


def tool_rows(rows: Sequence[ToolGroup]) -> list[StatisticsRow]:
    """A row for each tool; bars show the calls."""
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
    """A number of tokens of a sum."""
    return f"{'~' if group.estimated and count else ''}{tokens(count)}"


def headline(total: CallGroup, days: int) -> str:
    """The whole sum in a sentence."""
    apart = {"failed": total.failed, "stopped": total.cancelled, "retried": total.retries}
    said = ", ".join(f"{count:,} {kind}" for kind, count in apart.items() if count)
    calls = counted(total.calls, "call") + (f" ({said})" if said else "")
    where = counted(total.conversations, "conversation")
    words = range_words(days)
    begin = f"{words[0].upper()}{words[1:]}"
    return f"{begin}: {cost(total)}, {token_count(total, total.totals.tokens)} tokens, {calls} in {where}"


def token_line(total: CallGroup) -> str:
    """The kinds of tokens of a sum."""
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
        said.append(f"$?: the price of {counted(total.unpriced, 'call')} is unknown; the others cost {known} together.")
    if total.estimated:
        ended = "call that" if total.estimated == 1 else "calls that"
        said.append(f"~: includes {total.estimated:,} {ended} ended before the server reported all tokens.")
    return said


def _name(group: StatisticsGroup, row: CallGroup) -> str:
    match group:
        case StatisticsGroup.DAY:
            return _day(row.key)
        case StatisticsGroup.FOLDER:
            return clean_line(short_path(Path(row.key)))
        case StatisticsGroup.CONVERSATION:
            return clean_line(row.label) or "Untitled"
        case StatisticsGroup.PURPOSE:
            return _purpose(row.key)
        case StatisticsGroup.AGENT:
            return clean_line(row.key) or "general"
        case StatisticsGroup.MODEL:
            return clean_line(row.key) or "unknown model"


def _day(key: str) -> str:
    try:
        return f"{key} {datetime.date.fromisoformat(key):%a}"
    except ValueError:
        return "unknown day"


def _purpose(key: str) -> str:
    try:
        return PURPOSES[CallPurpose(key)]
    except ValueError:
        return clean_line(key)


def _cells(row: CallGroup) -> tuple[str, ...]:
    used = row.totals
    cached = used.cache_read_tokens + used.cache_creation_tokens
    counts = (used.tokens, used.input_tokens, used.output_tokens, cached)
    return (cost(row), *(token_count(row, count) for count in counts), f"{row.calls:,}")
