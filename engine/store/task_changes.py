"""Changes of the table `tracked_tasks`, each inside the caller's transaction (SPEC ACX-09, ACX-10, ACX-18)."""

from __future__ import annotations

import sqlite3
from typing import Final

from msgspec.structs import replace

from engine.codec import storable
from engine.ports.task_store import TaskRefused
from engine.records.tracked_tasks import TaskStatus, TrackedTask
from engine.store.task_rows import TaskData, encode_task, task
from tools.clean import clean_line

LONGEST_DESCRIPTION: Final = 500
"""Characters of a description; longer ones are cut."""
LONGEST_READ: Final = 10_000
"""Characters of a text that are looked at."""
NO_DESCRIPTION: Final = "A task needs a description."


def edit(
    connection: sqlite3.Connection,
    conversation_id: str,
    task_id: str,
    status: TaskStatus | None,
    description: str | None,
    at: float,
) -> TrackedTask:
    """Change a task for the user. Raises TaskRefused."""
    found = task(connection, conversation_id, task_id)
    if found.is_planning:
        raise TaskRefused("The planning section has neither a status nor a description.")
    words = found.description if description is None else short_line(description, LONGEST_DESCRIPTION)
    if not words:
        raise TaskRefused(NO_DESCRIPTION)
    changed = replace(found, status=status or found.status, description=words, updated_at=at)
    if replace(changed, updated_at=found.updated_at) == found:
        return found
    keep(connection, changed)
    return changed


def remove(connection: sqlite3.Connection, conversation_id: str, task_id: str) -> TrackedTask:
    """Remove a task and return it; its messages stay without one, and the orders behind it close the gap.

    Raises:
        TaskRefused: there is no such task.
    """
    found = task(connection, conversation_id, task_id)
    connection.execute("DELETE FROM tracked_tasks WHERE id = ?", (found.id,))
    if not found.is_planning:
        shift(connection, conversation_id, found.order, -1)
    return found


def keep(connection: sqlite3.Connection, changed: TrackedTask) -> None:
    """Write status, texts and time of a task."""
    data = TaskData(changed.description, changed.progresses, changed.preferences)
    connection.execute(
        "UPDATE tracked_tasks SET status = ?, data_json = ?, updated_at = ? WHERE id = ?",
        (changed.status, encode_task(data), changed.updated_at, changed.id),
    )


def shift(connection: sqlite3.Connection, conversation_id: str, behind: int, by: int) -> None:
    """Move the tasks behind an order; by way of negative orders, since no two may be equal meanwhile."""
    moved = "UPDATE tracked_tasks SET ord = {} WHERE conversation_id = ? AND {}"
    connection.execute(moved.format("-ord", "ord > ?"), (conversation_id, behind))
    connection.execute(moved.format(f"-ord + {int(by)}", "ord < 0"), (conversation_id,))


def short_line(text: str, most: int) -> str:
    """Outside text as one line of at most `most` characters."""
    line = " ".join(clean_line(storable(text[:LONGEST_READ])).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
