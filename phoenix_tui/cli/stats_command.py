"""`phoenix stats`: usage and cost over all conversations, for people and scripts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.records.statistics import CallGroup, ToolGroup
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.output import write_json, write_line, write_table
from phoenix_tui.cli.times import utc_time
from phoenix_tui.features.statistics import (
    MOST_DAYS,
    StatisticsBy,
    StatisticsReport,
    first_second,
    report_lines,
    report_table,
    statistics_report,
)
from tools.contract import JsonObject

if TYPE_CHECKING:
    from engine.api.statistics import StatisticsApi


async def run_stats(api: StatisticsApi, arguments: CommandArguments) -> Exit:
    """Print one report.

    Raises:
        CommandError: the days are too many.
        StorageError: the sums cannot be read.
    """
    days, now = arguments.days or 0, time.time()
    if days > MOST_DAYS:
        raise CommandError(f"--days is at most {MOST_DAYS:,}; leave it out for all time.")
    report = await statistics_report(api, StatisticsBy(arguments.by or StatisticsBy.PURPOSE), days, now)
    if arguments.json:
        write_json(_document(report, first_second(now, days) if days else None))
        return Exit.OK
    for line in report_lines(report):
        write_line(line)
    headings, rows = report_table(report)
    if rows:
        write_line("")
        write_table((*headings[1:], headings[0]), [(*row.cells, row.name) for row in rows])
    return Exit.OK


def _document(report: StatisticsReport, since: float | None) -> JsonObject:
    is_tools = report.by is StatisticsBy.TOOL
    return {
        "by": report.by.value,
        "days": report.days or None,
        "since": utc_time(since) if since is not None else None,
        "total": _calls(report.total),
        "rows": [_tool(one) for one in report.tools] if is_tools else [_calls(one) for one in report.rows],
    }


def _calls(row: CallGroup) -> JsonObject:
    used = row.totals
    return {
        "key": row.key,
        "title": row.label,
        "cost_usd": used.cost_usd,
        "known_cost_usd": row.known_cost_usd,
        "sub_agents_cost_usd": row.agents_cost_usd,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_creation_tokens": used.cache_creation_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "calls": row.calls,
        "failed": row.failed,
        "stopped": row.cancelled,
        "retried": row.retries,
        "estimated": row.estimated,
        "unpriced": row.unpriced,
        "conversations": row.conversations,
        "duration_ms": row.duration_ms,
    }


def _tool(row: ToolGroup) -> JsonObject:
    return {
        "key": row.name,
        "calls": row.calls,
        "errors": row.failed,
        "stopped": row.stopped,
        "duration_ms": row.duration_ms,
        "result_bytes": row.result_bytes,
    }
