"""The task board: the table `tracked_tasks`, its changes in the caller's transaction, and the progress of messages."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Final, assert_never
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from engine.codec import storable
from engine.ports.task_store import (
    AddPreference,
    AddProgress,
    AppendMessages,
    AppendToPlanning,
    BoardChange,
    InsertTask,
    MessageTracking,
    TaskRefused,
    UpdateTask,
)
from engine.records.tracked_tasks import TaskBoardView, TaskPage, TaskStatus, TrackedTask, TrackingStatus
from engine.store.events import add_update_events
from tools.clean import clean_line

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


def read_board(connection: sqlite3.Connection, conversation_id: str) -> TaskBoardView:
    """The whole board."""
    linked: dict[str, list[int]] = {}
    for row in connection.execute(_OF_MESSAGES, (conversation_id,)):
        linked.setdefault(row["tracked_task_id"], []).append(row["seq"])
    tasks = _read_rows(connection, conversation_id, linked)
    return TaskBoardView(
        tuple(task for task in tasks if not task.is_planning),
        next((task for task in tasks if task.is_planning), None),
        read_status(connection, conversation_id),
    )


def read_tasks(connection: sqlite3.Connection, conversation_id: str) -> list[TrackedTask]:
    """The rows in their order, the planning section first, without their messages."""
    return _read_rows(connection, conversation_id, {})


def read_status(connection: sqlite3.Connection, conversation_id: str) -> TrackingStatus:
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
        enabled=read_choice(connection, conversation_id) is True,
        problem=_read_problem(connection, conversation_id) if counts.keys() & _LEFT else "",
    )


def _read_problem(connection: sqlite3.Connection, conversation_id: str) -> str:
    row = connection.execute("SELECT tracking_problem FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    return "" if row is None else str(row["tracking_problem"])


def read_choice(connection: sqlite3.Connection, conversation_id: str) -> bool | None:
    """The user's choice for a conversation; None where the setting decides."""
    row = connection.execute(
        "SELECT disable_task_tracking, track_tasks FROM conversations WHERE id = ?", (conversation_id,)
    ).fetchone()
    return None if row is None else parse_choice(row)


def parse_choice(row: Any) -> bool | None:
    """The user's choice in a row of `conversations`; None where the setting decides."""
    return False if row["disable_task_tracking"] else True if row["track_tasks"] else None


def read_page(
    connection: sqlite3.Connection, conversation_id: str, cursor: str, limit: int, *, newest_first: bool
) -> TaskPage:
    """Tasks by time of creation. Raises TaskRefused."""
    if not 1 <= limit <= MOST_OF_PAGE:
        raise TaskRefused(f"A page of the task board has 1 to {MOST_OF_PAGE} tasks.")
    condition, values = "", list[Any]()
    if cursor:
        condition, values = f"AND (created_at, id) {'<' if newest_first else '>'} (?, ?)", [*_decode_cursor(cursor)]
    way = "DESC" if newest_first else "ASC"
    rows = connection.execute(
        f"""SELECT * FROM tracked_tasks WHERE conversation_id = ? AND is_planning = 0 {condition}
            ORDER BY created_at {way}, id {way} LIMIT ?""",
        (conversation_id, *values, limit + 1),
    ).fetchall()
    tasks = tuple(_read_task_row(row, ()) for row in rows[:limit])
    return TaskPage(tasks, _encode_cursor(tasks[-1]) if len(rows) > limit else "")


def list_untasked(connection: sqlite3.Connection, conversation_id: str) -> tuple[int, ...]:
    """Seqs of the messages without a task."""
    rows = connection.execute(
        """SELECT seq FROM messages WHERE conversation_id = ? AND tracked_task_id IS NULL AND role <> 'system'
            ORDER BY +seq""",  # by the index that has no texts
        (conversation_id,),
    )
    return tuple(row["seq"] for row in rows)


def read_task(connection: sqlite3.Connection, conversation_id: str, task_id: str) -> TrackedTask:
    """One task with its messages. Raises TaskRefused where there is none."""
    row = connection.execute(
        "SELECT * FROM tracked_tasks WHERE conversation_id = ? AND id = ?", (conversation_id, task_id)
    ).fetchone()
    if row is None:
        raise TaskRefused("This task is no longer on the board.")
    seqs = connection.execute("SELECT seq FROM messages WHERE tracked_task_id = ? ORDER BY seq", (task_id,))
    return _read_task_row(row, tuple(one["seq"] for one in seqs))


def _read_rows(
    connection: sqlite3.Connection, conversation_id: str, linked: Mapping[str, list[int]]
) -> list[TrackedTask]:
    rows = connection.execute("SELECT * FROM tracked_tasks WHERE conversation_id = ? ORDER BY ord", (conversation_id,))
    return [_read_task_row(row, tuple(linked.get(row["id"], ()))) for row in rows]


def _read_task_row(row: Any, seqs: tuple[int, ...]) -> TrackedTask:
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


def _encode_cursor(last: TrackedTask) -> str:
    return base64.urlsafe_b64encode(f"{last.created_at!r}|{last.id}".encode()).decode()


def _decode_cursor(cursor: str) -> tuple[float, str]:
    try:
        text = base64.urlsafe_b64decode(cursor[:_LONGEST_CURSOR].encode()).decode()
        created, _, task_id = text.partition("|")
        return float(created), task_id
    except ValueError as error:
        raise TaskRefused(_BAD_CURSOR) from error


LONGEST_PROBLEM: Final = 1_000
"""Characters of a stored reason: it may quote a provider, or a model."""
_PENDING: Final = """SELECT seq FROM messages
    WHERE conversation_id = ? AND task_process_status = 'pending' ORDER BY +seq LIMIT ?"""
"""The sign keeps SQLite from walking all messages in their order, texts included, in place of the index by status."""
_SETTLE: Final = """UPDATE messages SET task_process_status = ?
    WHERE conversation_id = ? AND task_process_status = ? RETURNING seq, id"""
_MARK: Final = """UPDATE messages SET task_process_status = ?1
    WHERE conversation_id = ?2 AND seq = ?3 AND task_process_status IS NOT ?1 RETURNING seq, id"""


def list_pending(connection: sqlite3.Connection, conversation_id: str, limit: int = -1) -> tuple[int, ...]:
    """Seqs of messages that wait, ascending; -1: all of them."""
    return tuple(row["seq"] for row in connection.execute(_PENDING, (conversation_id, limit)))


def settle_tracking(
    connection: sqlite3.Connection, conversation_id: str, of: MessageTracking, to: MessageTracking, at: float
) -> None:
    """Change the progress of all messages with the progress `of`, each with its event."""
    changed = connection.execute(_SETTLE, (to.value, conversation_id, of.value)).fetchall()
    _record_updates(connection, conversation_id, changed, to, at)


def mark_tracking(
    connection: sqlite3.Connection, conversation_id: str, seqs: Iterable[int], to: MessageTracking, at: float
) -> None:
    """Set the progress of these messages; each whose progress it changes has its event."""
    changed = [row for seq in seqs for row in connection.execute(_MARK, (to.value, conversation_id, seq)).fetchall()]
    _record_updates(connection, conversation_id, changed, to, at)


def store_problem(connection: sqlite3.Connection, conversation_id: str, problem: str) -> None:
    """Store the reason why messages wait or failed; empty without one."""
    connection.execute(
        "UPDATE conversations SET tracking_problem = ?1 WHERE id = ?2 AND tracking_problem <> ?1",
        (storable(problem[:LONGEST_PROBLEM]), conversation_id),
    )


def _record_updates(
    connection: sqlite3.Connection, conversation_id: str, changed: Iterable[Any], to: MessageTracking, at: float
) -> None:
    """Append the events of changed rows in the order of the messages: RETURNING has none of its own."""
    ids = [row["id"] for row in sorted(changed, key=lambda row: int(row["seq"]))]
    add_update_events(connection, conversation_id, ids, to.value, at)


LONGEST_DESCRIPTION: Final = 500
"""Characters of a description; longer ones are cut."""
LONGEST_READ: Final = 10_000
"""Characters of a text that are looked at."""
NO_DESCRIPTION: Final = "A task needs a description."


def edit_task(
    connection: sqlite3.Connection,
    conversation_id: str,
    task_id: str,
    status: TaskStatus | None,
    description: str | None,
    at: float,
) -> TrackedTask:
    """Change a task for the user. Raises TaskRefused."""
    found = read_task(connection, conversation_id, task_id)
    if found.is_planning:
        raise TaskRefused("The planning section has neither a status nor a description.")
    words = found.description if description is None else shorten_line(description, LONGEST_DESCRIPTION)
    if not words:
        raise TaskRefused(NO_DESCRIPTION)
    changed = replace(found, status=status or found.status, description=words, updated_at=at)
    if replace(changed, updated_at=found.updated_at) == found:
        return found
    store_task(connection, changed)
    return changed


def remove_task(connection: sqlite3.Connection, conversation_id: str, task_id: str) -> TrackedTask:
    """Remove a task and return it; its messages stay without one, and the orders behind it close the gap.

    Raises:
        TaskRefused: there is no such task.
    """
    found = read_task(connection, conversation_id, task_id)
    connection.execute("DELETE FROM tracked_tasks WHERE id = ?", (found.id,))
    if not found.is_planning:
        shift_tasks(connection, conversation_id, found.order, -1)
    return found


def store_task(connection: sqlite3.Connection, changed: TrackedTask) -> None:
    """Write status, texts and time of a task."""
    data = TaskData(changed.description, changed.progresses, changed.preferences)
    connection.execute(
        "UPDATE tracked_tasks SET status = ?, data_json = ?, updated_at = ? WHERE id = ?",
        (changed.status, encode_task(data), changed.updated_at, changed.id),
    )


def shift_tasks(connection: sqlite3.Connection, conversation_id: str, behind: int, by: int) -> None:
    """Move the tasks behind an order; by way of negative orders, since no two may be equal meanwhile."""
    moved = "UPDATE tracked_tasks SET ord = {} WHERE conversation_id = ? AND {}"
    connection.execute(moved.format("-ord", "ord > ?"), (conversation_id, behind))
    connection.execute(moved.format(f"-ord + {by}", "ord < 0"), (conversation_id,))


def shorten_line(text: str, most: int) -> str:
    """Outside text as one line of at most `most` characters."""
    line = " ".join(clean_line(storable(text[:LONGEST_READ])).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


MOST_TASKS: Final = 100
"""Tasks of a board: every one is in each request of the task agent."""
LONGEST_PROGRESS: Final = 150
"""Characters of a milestone (SPEC ACX-16); longer ones are cut."""
LONGEST_PREFERENCE: Final = 300
MOST_LINES: Final = 100
"""Milestones, or preferences, of a task; beyond them the oldest go."""
_ENDED: Final = frozenset({TaskStatus.SUCCESS, TaskStatus.FAILED})


class BoardWriter:
    """The changes of one reply, in one transaction; an impossible one raises TaskRefused."""

    def __init__(self, connection: sqlite3.Connection, conversation_id: str, seqs: frozenset[int], at: float) -> None:
        """`seqs` are the messages that may be linked."""
        self.linked: set[int] = set()
        """Seqs that were linked to a task or to the planning section."""
        self._connection = connection
        self._conversation_id = conversation_id
        self._seqs = seqs
        self._at = at
        self._tasks = read_tasks(connection, conversation_id)

    def apply(self, change: BoardChange) -> str:
        """Carry out one change; returns its effect in words for the model. Raises TaskRefused."""
        match change:
            case InsertTask(after, description):
                return self._insert(after, description)
            case UpdateTask():
                return self._update(change)
            case AppendMessages():
                return self._append(change)
            case AppendToPlanning(seqs):
                self._link(seqs, self._planning())
                return f"Linked {len(seqs)} messages to the planning section."
            case AddProgress(order, progress):
                self._keep(add_progress_line(self._at_order(order), progress))
                return f"Added the progress to task {order}."
            case AddPreference(preference):
                self._keep(add_preference_line(self._planning(), preference))
                return "Added the preference."
            case _:
                assert_never(change)

    def _insert(self, after: int, description: str) -> str:
        count = self._count()
        if not 0 <= after <= count:
            raise TaskRefused(f"Task {after} is out of range; a task can be inserted after 0 to {count}.")
        if count >= MOST_TASKS:
            raise TaskRefused(f"The board is full: it has {count} tasks. Update one of them instead.")
        words = shorten_line(description, LONGEST_DESCRIPTION)
        if not words:
            raise TaskRefused(NO_DESCRIPTION)
        shift_tasks(self._connection, self._conversation_id, after, 1)
        self._add(after + 1, TaskData(words), is_planning=False)
        return f"Inserted task {after + 1}; the tasks behind it moved by one."

    def _update(self, change: UpdateTask) -> str:
        task = self._at_order(change.order)
        words = (
            task.description if change.description is None else shorten_line(change.description, LONGEST_DESCRIPTION)
        )
        if not words:
            raise TaskRefused(NO_DESCRIPTION)
        self._keep(replace(task, status=change.status or task.status, description=words))
        return f"Updated task {change.order}."

    def _append(self, change: AppendMessages) -> str:
        task = self._at_order(change.order)
        if task.status in _ENDED:
            raise TaskRefused(
                f"Task {change.order} has the status '{task.status}'. Update its status to 'running' first."
            )
        changed = replace(task, status=TaskStatus.RUNNING)
        if change.progress is not None:
            changed = add_progress_line(changed, change.progress)
        if change.preference is not None:
            changed = add_preference_line(changed, change.preference)
        self._link(change.seqs, task)
        self._keep(changed)
        return f"Linked {len(change.seqs)} messages to task {change.order}."

    def _link(self, seqs: tuple[int, ...], task: TrackedTask) -> None:
        if not seqs:
            raise TaskRefused("Name at least one message.")
        unknown = sorted(set(seqs) - self._seqs)
        if unknown:
            raise TaskRefused(f"Message {unknown[0]} is out of range; only the current messages can be linked.")
        self._connection.executemany(
            "UPDATE messages SET tracked_task_id = ? WHERE conversation_id = ? AND seq = ?",
            [(task.id, self._conversation_id, seq) for seq in seqs],
        )
        self.linked.update(seqs)

    def _planning(self) -> TrackedTask:
        """The planning section; made where there is none."""
        for _ in range(2):
            found = next((task for task in self._tasks if task.is_planning), None)
            if found is not None:
                return found
            self._add(0, TaskData(), is_planning=True)
        raise AssertionError("the planning section was just made")

    def _at_order(self, order: int) -> TrackedTask:
        found = next((task for task in self._tasks if task.order == order and not task.is_planning), None)
        if found is None:
            count = self._count()
            there = f"the board has tasks 1 to {count}" if count else "the board has no tasks"
            raise TaskRefused(f"Task {order} is out of range; {there}.")
        return found

    def _count(self) -> int:
        return sum(not task.is_planning for task in self._tasks)

    def _add(self, order: int, data: TaskData, *, is_planning: bool) -> None:
        self._connection.execute(
            "INSERT INTO tracked_tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                str(uuid4()),
                self._conversation_id,
                order,
                TaskStatus.PENDING,
                int(is_planning),
                encode_task(data),
                self._at,
                self._at,
            ),
        )
        self._tasks = read_tasks(self._connection, self._conversation_id)

    def _keep(self, changed: TrackedTask) -> None:
        changed = replace(changed, updated_at=self._at)
        store_task(self._connection, changed)
        self._tasks = [changed if task.id == changed.id else task for task in self._tasks]


def add_progress_line(task: TrackedTask, progress: str) -> TrackedTask:
    """A task with another milestone. Raises TaskRefused."""
    line = shorten_line(progress, LONGEST_PROGRESS)
    if not line:
        raise TaskRefused("The progress is empty; say what was reached.")
    return replace(task, progresses=(*task.progresses, line)[-MOST_LINES:])


def add_preference_line(task: TrackedTask, preference: str) -> TrackedTask:
    """A task with another preference of the user; one that is known is not added again. Raises TaskRefused."""
    line = shorten_line(preference, LONGEST_PREFERENCE)
    if not line:
        raise TaskRefused("The preference is empty; say what the user prefers.")
    if line in task.preferences:
        return task
    return replace(task, preferences=(*task.preferences, line)[-MOST_LINES:])


BOARD_FULL: Final = f"The board is full: it has {MOST_TASKS} tasks. Delete another one first."
NO_PLANNING_BACK: Final = "The planning section cannot be put back."


def put_task_back(connection: sqlite3.Connection, conversation_id: str, removed: TrackedTask) -> TrackedTask:
    """Insert a task as it was, at its place or behind the last one, with those of its messages that have none now.

    One that is there already stays as it is.

    Raises:
        TaskRefused: the board is full, or it is the planning section, which is made again where it is needed.
    """
    now = read_tasks(connection, conversation_id)
    if any(one.id == removed.id for one in now):
        return read_task(connection, conversation_id, removed.id)
    if removed.is_planning:
        raise TaskRefused(NO_PLANNING_BACK)
    count = sum(not one.is_planning for one in now)
    if count >= MOST_TASKS:
        raise TaskRefused(BOARD_FULL)
    order = min(removed.order, count + 1)
    shift_tasks(connection, conversation_id, order - 1, 1)
    data = TaskData(removed.description, removed.progresses, removed.preferences)
    connection.execute(
        """INSERT INTO tracked_tasks
            (id, conversation_id, ord, status, is_planning, data_json, created_at, updated_at)
            VALUES (?, ?, ?, ?, 0, ?, ?, ?)""",
        (
            removed.id,
            conversation_id,
            order,
            removed.status,
            encode_task(data),
            removed.created_at,
            removed.updated_at,
        ),
    )
    connection.executemany(
        """UPDATE messages SET tracked_task_id = ?
            WHERE conversation_id = ? AND seq = ? AND tracked_task_id IS NULL""",
        [(removed.id, conversation_id, seq) for seq in removed.message_seqs],
    )
    return read_task(connection, conversation_id, removed.id)
