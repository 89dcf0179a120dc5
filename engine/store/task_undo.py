"""Puts a removed task back on its board, inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.ports.task_store import TaskRefused
from engine.records.tracked_tasks import TrackedTask
from engine.store.task_board import MOST_TASKS
from engine.store.task_changes import shift
from engine.store.task_rows import TaskData, encode_task, task, tasks_of

FULL: Final = f"The board is full: it has {MOST_TASKS} tasks. Delete another one first."
PLANNING: Final = "The planning section cannot be put back."


def put_back(connection: sqlite3.Connection, conversation_id: str, removed: TrackedTask) -> TrackedTask:
    """Insert a task as it was, at its place or behind the last one, with those of its messages that have none now.

    One that is there already stays as it is.

    Raises:
        TaskRefused: the board is full, or it is the planning section, which is made again where it is needed.
    """
    now = tasks_of(connection, conversation_id)
    if any(one.id == removed.id for one in now):
        return task(connection, conversation_id, removed.id)
    if removed.is_planning:
        raise TaskRefused(PLANNING)
    count = sum(not one.is_planning for one in now)
    if count >= MOST_TASKS:
        raise TaskRefused(FULL)
    order = min(removed.order, count + 1)
    shift(connection, conversation_id, order - 1, 1)
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
    return task(connection, conversation_id, removed.id)
