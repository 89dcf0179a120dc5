"""The table `tool_calls`: every call with its status and outcome; and the todo lists and plans of calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from engine.codec import CodecError, decode_todos, display_text, encode_blocks, encode_todos, readable_blocks, storable
from engine.machine.effects import MarkToolCall, SavePlan, SaveToolCalls, SaveToolResult
from engine.machine.messages import ImageBlock, TextBlock, ToolResult, ToolResultBlock, ToolStatus, ToolUseBlock
from engine.records import ToolCallRecord
from tools.contract import ToolInputError
from tools.displays import TodoList
from tools.planning import TODO_WRITE, items_of

INTERRUPTED = "[Tool execution interrupted by restart]"
"""Result of a call that a crash interrupted, as the model reads it (SPEC DEC-24)."""
_SETTLED = {ToolStatus.SUCCESS, ToolStatus.ERROR, ToolStatus.CANCELLED, ToolStatus.SKIPPED}


def add_tool_calls(connection: sqlite3.Connection, conversation_id: str, saving: SaveToolCalls) -> None:
    """Insert the calls of a message as queued, in request order."""
    connection.executemany(
        """INSERT INTO tool_calls (id, conversation_id, assistant_message_id, run_id, tool_use_id, ordinal, name,
            input_json, status) VALUES (?, ?, ?, (SELECT id FROM runs WHERE conversation_id = ? AND
            status = 'running'), ?, ?, ?, ?, 'queued')""",
        [
            (
                f"{saving.message_id}/{ordinal}",
                conversation_id,
                saving.message_id,
                conversation_id,
                storable(call.id),
                ordinal,
                storable(call.name),
                storable(call.input_json),
            )
            for ordinal, call in enumerate(saving.calls)
        ],
    )


def mark_tool_call(connection: sqlite3.Connection, conversation_id: str, marking: MarkToolCall, at: float) -> None:
    """Move a call on before it starts or asks; its clock starts when it runs, so waiting for an answer is no part."""
    connection.execute(
        "UPDATE tool_calls SET status = ?, started_at = ? WHERE conversation_id = ? AND tool_use_id = ?",
        (
            marking.status,
            at if marking.status is ToolStatus.RUNNING else None,
            conversation_id,
            storable(marking.call_id),
        ),
    )


def settle_tool_call(connection: sqlite3.Connection, conversation_id: str, saving: SaveToolResult, at: float) -> None:
    """Record the end of a call, complete enough to rebuild the model's view."""
    result = saving.result
    content: tuple[TextBlock | ImageBlock, ...] = (TextBlock(result.text), *result.images)
    connection.execute(
        """UPDATE tool_calls SET status = ?, output_text = ?, output_json = ?, display_json = ?, is_error = ?,
            truncated = ?, ended_at = ?, duration_ms = CAST(MAX(0, (? - COALESCE(started_at, ?)) * 1000) AS INTEGER)
            WHERE conversation_id = ? AND tool_use_id = ?""",
        (
            result.status,
            storable(result.text),
            encode_blocks(content) if result.images else "",
            storable(display_text(result)),
            int(result.is_error),
            int(result.truncated),
            at,
            at,
            at,
            conversation_id,
            storable(result.call_id),
        ),
    )


def note_process(connection: sqlite3.Connection, conversation_id: str, call_id: str, pid: int, started: int) -> None:
    """Remember the process of a running call."""
    connection.execute(
        "UPDATE tool_calls SET pid = ?, proc_start = ? WHERE conversation_id = ? AND tool_use_id = ?",
        (pid, started, conversation_id, storable(call_id)),
    )


def read_tool_calls(
    connection: sqlite3.Connection, conversation_id: str, message_ids: Sequence[str]
) -> list[ToolCallRecord]:
    """The calls of these messages, in the order of the conversation."""
    rows = connection.execute(
        """SELECT t.* FROM json_each(?) AS wanted JOIN messages AS m ON m.id = wanted.value
            JOIN tool_calls AS t ON t.assistant_message_id = m.id
            WHERE m.conversation_id = ? ORDER BY m.seq, t.ordinal""",
        (msgspec.json.encode(list(message_ids)).decode(), conversation_id),
    ).fetchall()
    return [
        ToolCallRecord(
            tool_use_id=row["tool_use_id"],
            message_id=row["assistant_message_id"],
            ordinal=row["ordinal"],
            name=row["name"],
            input_json=row["input_json"],
            status=ToolStatus(row["status"]),
            output_text=row["output_text"],
            display_json=row["display_json"],
            duration_ms=row["duration_ms"],
        )
        for row in rows
    ]


def list_taken_call_ids(connection: sqlite3.Connection, conversation_id: str, ids: Iterable[str]) -> frozenset[str]:
    """Stored ids that equal one of these, or begin with it and `_dedup_`."""
    found: set[str] = set()
    for one in map(storable, ids):
        begin = f"{one}_dedup_"
        rows = connection.execute(
            """SELECT tool_use_id FROM tool_calls WHERE conversation_id = ?1 AND tool_use_id = ?2
                UNION ALL SELECT tool_use_id FROM tool_calls
                WHERE conversation_id = ?1 AND tool_use_id >= ?3 AND tool_use_id < ?4""",
            (conversation_id, one, begin, f"{begin[:-1]}`"),  # the character behind the underscore
        )
        found.update(row["tool_use_id"] for row in rows)
    return frozenset(found)


def list_running_processes(connection: sqlite3.Connection, conversation_id: str) -> tuple[tuple[int, int], ...]:
    """(pid, start ticks) of every call that was running."""
    rows = connection.execute(
        """SELECT pid, proc_start FROM tool_calls
            WHERE conversation_id = ? AND status = 'running' AND pid IS NOT NULL AND proc_start IS NOT NULL""",
        (conversation_id,),
    ).fetchall()
    return tuple((row["pid"], row["proc_start"]) for row in rows)


def interrupt_open_calls(
    connection: sqlite3.Connection, conversation_id: str, at: float, found: ToolResult | None = None
) -> tuple[str, ...]:
    """End every call that has not ended; returns their ids in request order.

    `found` is the partial result of the running one: sub-agents that ended before the crash do not run twice.
    """
    rows = connection.execute(
        """SELECT t.id, t.tool_use_id, t.status FROM tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id
            WHERE t.conversation_id = ? AND t.status IN ('queued', 'awaiting_approval', 'running')
            ORDER BY m.seq, t.ordinal""",
        (conversation_id,),
    ).fetchall()
    whole = ("", "") if found is None else (f"\n\n{found.text}", display_text(found))
    left = {row["id"]: whole if row["status"] == "running" else ("", "") for row in rows}
    connection.executemany(
        """UPDATE tool_calls SET status = 'interrupted', output_text = ?, display_json = ?, is_error = 1, ended_at = ?
            WHERE id = ?""",
        [(f"{INTERRUPTED}{text}", display, at, call_id) for call_id, (text, display) in left.items()],
    )
    return tuple(row["tool_use_id"] for row in rows)


def read_results(
    connection: sqlite3.Connection, conversation_id: str, uses: Iterable[ToolUseBlock]
) -> tuple[ToolResultBlock, ...]:
    """One result for each tool use, in order: the real one where the call had ended, else the synthetic one."""
    return tuple(_read_result(connection, conversation_id, use) for use in uses)


def _read_result(connection: sqlite3.Connection, conversation_id: str, use: ToolUseBlock) -> ToolResultBlock:
    row = connection.execute(
        """SELECT status, output_text, output_json, is_error FROM tool_calls
            WHERE conversation_id = ? AND tool_use_id = ?""",
        (conversation_id, storable(use.id)),
    ).fetchone()
    if row is None or row["status"] not in _SETTLED:
        told = row["output_text"] if row is not None and row["output_text"].startswith(INTERRUPTED) else INTERRUPTED
        return ToolResultBlock(use.id, (TextBlock(told),), is_error=True)
    content = readable_blocks(row["output_json"])[0] if row["output_json"] else (TextBlock(row["output_text"]),)
    return ToolResultBlock(use.id, cast("tuple[TextBlock | ImageBlock, ...]", content), bool(row["is_error"]))


def read_todos(text: str) -> TodoList:
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


def read_todos_at(connection: sqlite3.Connection, conversation_id: str, todos_json: str, seq: int) -> str:
    """The list as it was at the message `seq`: this one, or that of the last call up to there.

    One that was finished by then is left out, as it is at the end of a run.
    """
    now = read_todos(todos_json)
    if now.at <= seq:
        return todos_json
    row = connection.execute(
        """SELECT t.input_json, m.seq FROM tool_calls AS t JOIN messages AS m ON m.id = t.assistant_message_id
            WHERE t.conversation_id = ? AND t.name = ? AND t.status = 'success' AND m.seq <= ?
            ORDER BY m.seq DESC, t.ordinal DESC LIMIT 1""",
        (conversation_id, TODO_WRITE, seq),
    ).fetchone()
    then = _read_written_todos(row) if row is not None else TodoList()
    return encode_todos(then) if then.is_open else ""


def _read_written_todos(row: Any) -> TodoList:
    try:
        return TodoList(items_of(msgspec.json.decode(row["input_json"], type=dict[str, Any])), at=row["seq"])
    except (msgspec.DecodeError, ToolInputError, RecursionError):
        return TodoList()
