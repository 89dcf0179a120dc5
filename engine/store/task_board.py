"""Changes of the board that a task agent asks for, each checked against the rows of the moment (SPEC ACX-07 to -11)."""

from __future__ import annotations

import sqlite3
from typing import Final, assert_never
from uuid import uuid4

from msgspec.structs import replace

from engine.ports.task_store import (
    AddPreference,
    AddProgress,
    AppendMessages,
    AppendToPlanning,
    BoardChange,
    InsertTask,
    TaskRefused,
    UpdateTask,
)
from engine.records.tracked_tasks import TaskStatus, TrackedTask
from engine.store.task_changes import LONGEST_DESCRIPTION, NO_DESCRIPTION, keep, shift, short_line
from engine.store.task_rows import TaskData, encode_task, tasks_of

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
        self._tasks = tasks_of(connection, conversation_id)

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
                self._keep(with_progress(self._at_order(order), progress))
                return f"Added the progress to task {order}."
            case AddPreference(preference):
                self._keep(with_preference(self._planning(), preference))
                return "Added the preference."
            case _:
                assert_never(change)

    def _insert(self, after: int, description: str) -> str:
        count = self._count()
        if not 0 <= after <= count:
            raise TaskRefused(f"Task {after} is out of range; a task can be inserted after 0 to {count}.")
        if count >= MOST_TASKS:
            raise TaskRefused(f"The board is full: it has {count} tasks. Update one of them instead.")
        words = short_line(description, LONGEST_DESCRIPTION)
        if not words:
            raise TaskRefused(NO_DESCRIPTION)
        shift(self._connection, self._conversation_id, after, 1)
        self._add(after + 1, TaskData(words), is_planning=False)
        return f"Inserted task {after + 1}; the tasks behind it moved by one."

    def _update(self, change: UpdateTask) -> str:
        task = self._at_order(change.order)
        words = task.description if change.description is None else short_line(change.description, LONGEST_DESCRIPTION)
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
            changed = with_progress(changed, change.progress)
        if change.preference is not None:
            changed = with_preference(changed, change.preference)
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
        self._tasks = tasks_of(self._connection, self._conversation_id)

    def _keep(self, changed: TrackedTask) -> None:
        changed = replace(changed, updated_at=self._at)
        keep(self._connection, changed)
        self._tasks = [changed if task.id == changed.id else task for task in self._tasks]


def with_progress(task: TrackedTask, progress: str) -> TrackedTask:
    """A task with another milestone. Raises TaskRefused."""
    line = short_line(progress, LONGEST_PROGRESS)
    if not line:
        raise TaskRefused("The progress is empty; say what was reached.")
    return replace(task, progresses=(*task.progresses, line)[-MOST_LINES:])


def with_preference(task: TrackedTask, preference: str) -> TrackedTask:
    """A task with another preference of the user; one that is known is not added again. Raises TaskRefused."""
    line = short_line(preference, LONGEST_PREFERENCE)
    if not line:
        raise TaskRefused("The preference is empty; say what the user prefers.")
    if line in task.preferences:
        return task
    return replace(task, preferences=(*task.preferences, line)[-MOST_LINES:])
