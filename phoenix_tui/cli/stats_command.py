"""`phoenix stats` and `phoenix tasks`: tables of what is stored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.records.runs import CallGroup, ToolGroup
from engine.records.tracked_tasks import TaskBoardView, TrackedTask
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.finding import find_one
from phoenix_tui.cli.output import utc_time, write_json, write_line, write_table
from phoenix_tui.features.context_window import (
    MOST_DAYS,
    StatisticsBy,
    StatisticsReport,
    first_second,
    report_lines,
    report_table,
    statistics_report,
)
from phoenix_tui.text.task_text import board_lines
from tools.contract import JsonObject

if TYPE_CHECKING:
    from engine.store.statistics import StatisticsStore
    from engine.store.store import Store
    from engine.store.task_store import TaskStore


async def run_stats(api: StatisticsStore, arguments: CommandArguments) -> Exit:
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


async def show_tasks(store: Store, tasks: TaskStore, arguments: CommandArguments, *, by_setting: bool) -> Exit:
    """Print the board; nothing is changed. `by_setting` says whether a conversation without a choice is tracked.

    Raises:
        CommandError: there is no such conversation, or more than one.
        StorageError: the store fails.
    """
    found = await find_one(store, arguments.reference, partly=True)
    view, chosen = await tasks.board(found.id), await tasks.read_choice(found.id)
    view = replace(view, status=replace(view.status, enabled=by_setting if chosen is None else chosen))
    if arguments.json:
        write_json(_board_object(found.id, view, chosen))
    else:
        write_line("\n".join(board_lines(view, time.time())))
    return Exit.OK


def _board_object(conversation_id: str, view: TaskBoardView, chosen: bool | None) -> JsonObject:
    status = view.status
    return {
        "session_id": conversation_id,
        "tracking": status.enabled,
        "tracking_by": "setting" if chosen is None else "conversation",
        "messages": {
            "success": status.success,
            "running": status.running,
            "pending": status.pending,
            "failed": status.failed,
            "disabled": status.disabled,
            "before_tracking": status.untracked,
        },
        "tasks": [_task_object(task) for task in view.tasks],
        "planning": _task_object(view.planning) if view.planning is not None else None,
    }


def _task_object(task: TrackedTask) -> JsonObject:
    found: JsonObject = {
        "order": task.order,
        "id": task.id,
        "status": task.status.value,
        "description": task.description,
        "progress": list(task.progresses),
        "preferences": list(task.preferences),
        "messages": list(task.message_seqs),
        "created_at": utc_time(task.created_at),
        "updated_at": utc_time(task.updated_at),
    }
    if task.is_planning:
        for name in ("order", "status", "description", "progress"):
            del found[name]
    return found
