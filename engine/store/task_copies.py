"""The task board of a copy or an import: only its own tasks and messages, in order, and nothing that would act."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from engine.ports import ImportRefused
from engine.ports.task_store import MessageTracking
from engine.records.tracked_tasks import TaskStatus
from engine.store.copying import ColumnValue, Row, TableRows
from engine.store.task_board import LONGEST_PREFERENCE, LONGEST_PROGRESS, MOST_LINES, MOST_TASKS
from engine.store.task_changes import LONGEST_DESCRIPTION, short_line
from engine.store.task_rows import TaskData, decode_task, encode_task, tasks_of

TOO_MANY: Final = f"This export has more than {MOST_TASKS} tasks on its board."
_LONGEST_DATA: Final = 1_000_000
"""Characters of the data of one task; Phoenix itself stores at most about a tenth."""
_WITHOUT_MESSAGES: Final = """DELETE FROM tracked_tasks WHERE conversation_id = :id
    AND created_at > (SELECT created_at FROM messages WHERE conversation_id = :id ORDER BY seq DESC LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM messages WHERE tracked_task_id = tracked_tasks.id)"""


def drop_later(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Remove tasks of a copy up to a message that were made after that message and have none of those copied."""
    connection.execute(_WITHOUT_MESSAGES, {"id": conversation_id})
    close_gaps(connection, conversation_id)


def close_gaps(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Number the tasks from 1 on, in their order."""
    tasks = [task for task in tasks_of(connection, conversation_id) if not task.is_planning]
    moved = [(order, task.id) for order, task in enumerate(tasks, start=1) if order != task.order]
    connection.executemany("UPDATE tracked_tasks SET ord = ? WHERE id = ?", [(-order, one) for order, one in moved])
    connection.executemany("UPDATE tracked_tasks SET ord = ? WHERE id = ?", moved)


def is_task_data(value: ColumnValue) -> bool:
    """True for the column `data_json` of a task."""
    if not isinstance(value, str) or len(value) > _LONGEST_DATA:
        return False
    try:
        decode_task(value)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def is_task_status(value: ColumnValue) -> bool:
    """True for the status of a task."""
    return value in set(TaskStatus)


def is_tracking(value: ColumnValue) -> bool:
    """True for the progress of a message through tracking."""
    return value in set(MessageTracking)


def settle_imported(rows: TableRows) -> None:
    """Number the tasks of a file, cut their texts, and let none of its messages wait for a model.

    Raises:
        ImportRefused: there are more than a board holds.
    """
    tasks = rows.get("tracked_tasks", [])
    if len(tasks) > MOST_TASKS + 1:
        raise ImportRefused(TOO_MANY)
    tasks.sort(key=_order)
    planning = next((row for row in tasks if row.get("is_planning")), None)
    listed = [row for row in tasks if row is not planning]
    for order, row in enumerate(listed, start=1):
        row |= {"ord": order, "is_planning": 0}
    if planning is not None:
        planning["ord"] = 0
    for row in tasks:
        row["data_json"] = _bounded(str(row.get("data_json") or "{}"))
    for message in rows["messages"]:
        if message.get("task_process_status") in {MessageTracking.PENDING, MessageTracking.RUNNING}:
            message["task_process_status"] = MessageTracking.DISABLED.value


def _order(row: Row) -> int:
    order = row.get("ord")
    return order if isinstance(order, int) else 0


def _bounded(text: str) -> str:
    data = decode_task(text)
    return encode_task(
        TaskData(
            short_line(data.task_description, LONGEST_DESCRIPTION),
            tuple(short_line(line, LONGEST_PROGRESS) for line in data.progresses[-MOST_LINES:]),
            tuple(short_line(line, LONGEST_PREFERENCE) for line in data.user_preferences[-MOST_LINES:]),
        )
    )
