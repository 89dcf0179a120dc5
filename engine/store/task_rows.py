"""The table `tracked_tasks` and the links of messages to it, read as values."""

from __future__ import annotations

import base64
import binascii
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.ports.task_store import TaskRefused
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus

MOST_OF_PAGE: Final = 200
"""Tasks of a page (SPEC ACX-17)."""
_LONGEST_CURSOR: Final = 300
_BAD_CURSOR: Final = "This page of the task board no longer exists; begin again at the first one."
_OF_MESSAGES: Final = """SELECT tracked_task_id, seq FROM messages
    WHERE tracked_task_id IN (SELECT id FROM tracked_tasks WHERE conversation_id = ?) ORDER BY seq"""
_COUNTS: Final = """SELECT task_process_status AS status, count(*) AS number FROM messages
    WHERE conversation_id = ? AND role <> 'system' GROUP BY task_process_status"""
_LEFT: Final = frozenset({"pending", "failed"})
"""Progress of messages that a pass has left."""


class TaskData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The column `data_json`."""

    task_description: str = ""
    progresses: tuple[str, ...] = ()
    user_preferences: tuple[str, ...] = ()


def decode_task(text: str) -> TaskData:
    """The column as a value. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(text, type=TaskData)


def encode_task(data: TaskData) -> str:
    """The column of a value."""
    return msgspec.json.encode(data).decode()


def board(connection: sqlite3.Connection, conversation_id: str) -> TaskBoardView:
    """The whole board."""
    linked: dict[str, list[int]] = {}
    for row in connection.execute(_OF_MESSAGES, (conversation_id,)):
        linked.setdefault(row["tracked_task_id"], []).append(row["seq"])
    tasks = _tasks(connection, conversation_id, linked)
    return TaskBoardView(
        tuple(task for task in tasks if not task.is_planning),
        next((task for task in tasks if task.is_planning), None),
        status(connection, conversation_id),
    )


def tasks_of(connection: sqlite3.Connection, conversation_id: str) -> list[TrackedTask]:
    """The rows in their order, the planning section first, without their messages."""
    return _tasks(connection, conversation_id, {})


def status(connection: sqlite3.Connection, conversation_id: str) -> TrackingStatus:
    """Counts of the messages; `enabled` says whether the user switched tracking on here.

    A stored reason is left out where no message is left that it is about.
    """
    counts = {row["status"]: row["number"] for row in connection.execute(_COUNTS, (conversation_id,))}
    return TrackingStatus(
        success=counts.get("success", 0),
        running=counts.get("running", 0),
        pending=counts.get("pending", 0),
        failed=counts.get("failed", 0),
        disabled=counts.get("disabled", 0),
        untracked=counts.get(None, 0),
        enabled=chosen(connection, conversation_id) is True,
        problem=_problem(connection, conversation_id) if counts.keys() & _LEFT else "",
    )


def _problem(connection: sqlite3.Connection, conversation_id: str) -> str:
    row = connection.execute("SELECT tracking_problem FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    return "" if row is None else str(row["tracking_problem"])


def chosen(connection: sqlite3.Connection, conversation_id: str) -> bool | None:
    """The user's choice for a conversation; None where the setting decides."""
    row = connection.execute(
        "SELECT disable_task_tracking, track_tasks FROM conversations WHERE id = ?", (conversation_id,)
    ).fetchone()
    return None if row is None else chosen_tracking(row)


def chosen_tracking(row: Any) -> bool | None:
    """The user's choice in a row of `conversations`; None where the setting decides."""
    return False if row["disable_task_tracking"] else True if row["track_tasks"] else None


def page(
    connection: sqlite3.Connection, conversation_id: str, cursor: str, limit: int, *, newest_first: bool
) -> TaskPage:
    """Tasks by time of creation. Raises TaskRefused."""
    if not 1 <= limit <= MOST_OF_PAGE:
        raise TaskRefused(f"A page of the task board has 1 to {MOST_OF_PAGE} tasks.")
    condition, values = "", list[Any]()
    if cursor:
        condition, values = f"AND (created_at, id) {'<' if newest_first else '>'} (?, ?)", [*_position(cursor)]
    way = "DESC" if newest_first else "ASC"
    rows = connection.execute(
        f"""SELECT * FROM tracked_tasks WHERE conversation_id = ? AND is_planning = 0 {condition}
            ORDER BY created_at {way}, id {way} LIMIT ?""",
        (conversation_id, *values, limit + 1),
    ).fetchall()
    tasks = tuple(_task(row, ()) for row in rows[:limit])
    return TaskPage(tasks, _cursor(tasks[-1]) if len(rows) > limit else "")


def untasked(connection: sqlite3.Connection, conversation_id: str) -> tuple[int, ...]:
    """Seqs of the messages without a task."""
    rows = connection.execute(
        """SELECT seq FROM messages WHERE conversation_id = ? AND tracked_task_id IS NULL AND role <> 'system'
            ORDER BY +seq""",  # by the index that has no texts
        (conversation_id,),
    )
    return tuple(row["seq"] for row in rows)


def task(connection: sqlite3.Connection, conversation_id: str, task_id: str) -> TrackedTask:
    """One task with its messages. Raises TaskRefused where there is none."""
    row = connection.execute(
        "SELECT * FROM tracked_tasks WHERE conversation_id = ? AND id = ?", (conversation_id, task_id)
    ).fetchone()
    if row is None:
        raise TaskRefused("This task is no longer on the board.")
    seqs = connection.execute("SELECT seq FROM messages WHERE tracked_task_id = ? ORDER BY seq", (task_id,))
    return _task(row, tuple(one["seq"] for one in seqs))


def _tasks(connection: sqlite3.Connection, conversation_id: str, linked: Mapping[str, list[int]]) -> list[TrackedTask]:
    rows = connection.execute("SELECT * FROM tracked_tasks WHERE conversation_id = ? ORDER BY ord", (conversation_id,))
    return [_task(row, tuple(linked.get(row["id"], ()))) for row in rows]


def _task(row: Any, seqs: tuple[int, ...]) -> TrackedTask:
    """A row as a value; data that cannot be read costs its texts, not the board."""
    try:
        data = decode_task(row["data_json"])
    except msgspec.MsgspecError:
        data = TaskData()
    return TrackedTask(
        id=row["id"],
        conversation_id=row["conversation_id"],
        order=row["ord"],
        status=TaskStatus(row["status"]),
        description=data.task_description,
        progresses=data.progresses,
        preferences=data.user_preferences,
        is_planning=bool(row["is_planning"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        message_seqs=seqs,
    )


def _cursor(last: TrackedTask) -> str:
    return base64.urlsafe_b64encode(f"{last.created_at!r}|{last.id}".encode()).decode()


def _position(cursor: str) -> tuple[float, str]:
    try:
        text = base64.urlsafe_b64decode(cursor[:_LONGEST_CURSOR].encode()).decode()
        created, _, task_id = text.partition("|")
        return float(created), task_id
    except (ValueError, binascii.Error) as error:
        raise TaskRefused(_BAD_CURSOR) from error
