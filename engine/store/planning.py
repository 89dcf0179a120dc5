"""The todo list and the plan of a conversation: columns, and their value at an earlier message."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from engine.codec import CodecError, decode_todos, encode_todos, storable
from engine.machine.effects import SavePlan
from tools.contract import ToolInputError
from tools.todo_items import TodoList
from tools.todo_write import NAME, items_of


def todos_of(text: str) -> TodoList:
    """The list of a row; empty where it cannot be read, for a conversation is worth more than its list."""
    try:
        return decode_todos(text)
    except CodecError:
        return TodoList()


def set_todos(connection: sqlite3.Connection, conversation_id: str, todos: TodoList) -> None:
    """Store the list."""
    connection.execute("UPDATE conversations SET todos_json = ? WHERE id = ?", (encode_todos(todos), conversation_id))


def set_plan(connection: sqlite3.Connection, conversation_id: str, save: SavePlan) -> None:
    """Store an accepted plan and the permission mode that came with it."""
    connection.execute(
        """UPDATE conversations SET plan_text = ?, plan_at = ?,
            permission_mode = COALESCE(NULLIF(?, ''), permission_mode) WHERE id = ?""",
        (storable(save.plan), save.at, save.mode, conversation_id),
    )


def todos_at(connection: sqlite3.Connection, conversation_id: str, todos_json: str, seq: int) -> str:
    """The list as it was at the message `seq`: this one, or that of the last call up to there.

    One that was finished by then is left out, as it is at the end of a run.
    """
    now = todos_of(todos_json)
    if now.at <= seq:
        return todos_json
    row = connection.execute(
        """SELECT t.input_json, m.seq FROM tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id
            WHERE t.conversation_id = ? AND t.name = ? AND t.status = 'success' AND m.seq <= ?
            ORDER BY m.seq DESC, t.ordinal DESC LIMIT 1""",
        (conversation_id, NAME, seq),
    ).fetchone()
    then = _written(row) if row is not None else TodoList()
    return encode_todos(then) if then.is_open else ""


def _written(row: Any) -> TodoList:
    try:
        return TodoList(items_of(msgspec.json.decode(row["input_json"], type=dict[str, Any])), at=row["seq"])
    except (msgspec.DecodeError, ToolInputError, RecursionError):
        return TodoList()
