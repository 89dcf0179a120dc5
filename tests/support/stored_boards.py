"""Task boards written straight into the database of a program that is not running."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

CREATED = 1_794_823_200.0


def store_task(
    database: Path, conversation_id: str, order: int, status: str, data: Mapping[str, Any], seqs: Sequence[int] = ()
) -> str:
    """Add a task, order 0 for the planning section, and link these messages to it; returns its id."""
    task_id = f"stored-{order}"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            """INSERT INTO tracked_tasks
                (id, conversation_id, ord, data_json, status, is_planning, created_at, updated_at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                task_id,
                conversation_id,
                order,
                json.dumps(data),
                status,
                int(order == 0),
                CREATED + order,
                CREATED + order,
            ),
        )
        for seq in seqs:
            connection.execute(
                """UPDATE messages SET tracked_task_id = ?, task_process_status = 'success'
                    WHERE conversation_id = ? AND seq = ?""",
                (task_id, conversation_id, seq),
            )
    return task_id


def stored_tasks(database: Path) -> list[tuple[int, str, str]]:
    """Order, status and description of every stored task."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT ord, status, data_json FROM tracked_tasks WHERE ord > 0 ORDER BY ord")
        return [(order, status, json.loads(data)["task_description"]) for order, status, data in rows]
