"""`phoenix tasks`: the task board of one conversation, for people and scripts."""

from __future__ import annotations

import time

from msgspec.structs import replace

from engine.ports import Store
from engine.ports.task_store import TaskStore
from engine.records.tracked_tasks import TaskBoardView, TrackedTask
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import Exit
from phoenix_tui.cli.finding import find_one
from phoenix_tui.cli.output import write_json, write_line
from phoenix_tui.cli.times import utc_time
from phoenix_tui.text.task_text import board_lines
from tools.contract import JsonObject


async def show_tasks(store: Store, tasks: TaskStore, arguments: CommandArguments, *, by_setting: bool) -> Exit:
    """Print the board; nothing is changed. `by_setting` says whether a conversation without a choice is tracked.

    Raises:
        CommandError: there is no such conversation, or more than one.
        StorageError: the store fails.
    """
    found = await find_one(store, arguments.reference, partly=True)
    view, chosen = await tasks.board(found.id), await tasks.chosen(found.id)
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
