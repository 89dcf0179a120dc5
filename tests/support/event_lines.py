"""Stored events of a database as short lines: what happened, without ids and times."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

FORMS: Final = {
    "message.persisted": "{role}/{origin}",
    "task:progress": "{stage} {iteration}",
    "state.changed": "{from} > {to}",
    "task:tool_call": "{toolUseId}",
    "task:tool_start": "{toolUseId}",
    "task:tool_result": "{toolUseId}",
    "task:failed": "{code}",
    "run.retrying": "{attempt}/{maxAttempts} {error}",
    "task:subagent_start": "{message}",
    "task:subagent_stop": "{status}",
    "block.reply": "{content}",
}
"""Fields that tell an event from others of its name."""


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Every event, oldest first, with its payload as a value."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM events ORDER BY seq")]
    return [row | {"payload": json.loads(row["payload_json"])} for row in rows]


def lines_of(path: Path, conversation_id: str = "") -> list[str]:
    """The events of one conversation, or of all, as lines."""
    return [line_of(row) for row in rows_of(path) if conversation_id in {"", row["conversation_id"]}]


def line_of(row: dict[str, Any]) -> str:
    """One event: its name, and the fields that tell it from others of the name."""
    payload = row["payload"]
    words = FORMS.get(row["type"], "").format(**payload)
    result = {True: " ok", False: " not ok"}[payload["success"]] if "success" in payload else ""
    return f"{row['type']} {words}{result}".rstrip()
