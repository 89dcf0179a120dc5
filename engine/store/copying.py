"""The rows of a whole conversation, read, renamed and inserted together, and which rows are copies of others."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final, TypeAlias, cast
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from engine.codec import decode_blocks, encode_blocks
from engine.machine.messages import Block, ImageBlock, TextBlock, ToolResultBlock
from engine.ports import ImportRefused, NoConversation, StorageError
from engine.ports.task_store import MessageTracking
from engine.records.tracked_tasks import TaskStatus
from engine.store.tasks import (
    LONGEST_DESCRIPTION,
    LONGEST_PREFERENCE,
    LONGEST_PROGRESS,
    MOST_LINES,
    MOST_TASKS,
    TaskData,
    decode_task,
    encode_task,
    read_tasks,
    shorten_line,
)

ColumnValue: TypeAlias = "str | int | float | None"
Row: TypeAlias = "dict[str, ColumnValue]"
TableRows: TypeAlias = "dict[str, list[Row]]"
"""Table name -> its rows, in an order that foreign keys accept."""


class Unfit(StorageError):
    """Rows that contradict each other or the schema; the message is a sentence."""


_SEARCHED = frozenset({"messages", "tool_calls"})
"""Tables whose triggers write the search index."""
_OF_CONVERSATION = "conversation_id = ?"
TABLES: Mapping[str, tuple[str, str]] = {
    "conversations": ("id = ?", "id"),
    "turns": (_OF_CONVERSATION, "turn_number"),
    "tracked_tasks": (_OF_CONVERSATION, "ord"),
    "runs": (_OF_CONVERSATION, "rowid"),
    "messages": (_OF_CONVERSATION, "seq"),
    "tool_calls": (_OF_CONVERSATION, "rowid"),
    "attachments": (_OF_CONVERSATION, "rowid"),
    "queued_messages": (_OF_CONVERSATION, "ord"),
    "inbox": (_OF_CONVERSATION, "id"),
    "model_calls": (_OF_CONVERSATION, "rowid"),
    "copied_rows": (_OF_CONVERSATION, "rowid"),
    "traces": (_OF_CONVERSATION, "rowid"),
    "spans": ("trace_id IN (SELECT id FROM traces WHERE conversation_id = ?)", "rowid"),
}
"""Rows of a table that belong to a conversation, and their order. Events stay where they happened."""

_LEFT_OUT: Mapping[str, frozenset[str]] = {
    "conversations": frozenset({"owner_instance", "parent_id", "branch_of", "branch_seq", "superseded_by", "partial"}),
    "inbox": frozenset({"id"}),
}
"""Columns that mean nothing in another database, or are numbered by it."""

_REFERENCES = frozenset(
    {"id", "conversation_id", "turn_id", "run_id", "trigger_message_id", "parent_run_id", "assistant_message_id"}
    | {"message_id", "trace_id", "parent_span_id", "tracked_task_id"}
)
"""Columns that hold an id minted by Phoenix."""
NAMES_AN_IMAGE = '"attachment_id"'
"""Blocks without this have nothing to rename; decoding them all would take seconds in a long conversation."""


def list_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table that go along."""
    rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return [row["name"] for row in rows if row["name"] not in _LEFT_OUT.get(table, frozenset())]


def read_rows(connection: sqlite3.Connection, conversation_id: str) -> TableRows:
    """Read all rows of a conversation. Raises StorageError when there is none."""
    rows = {
        table: _select_rows(connection, table, condition, order, conversation_id)
        for table, (condition, order) in TABLES.items()
    }
    if not rows["conversations"]:
        raise NoConversation(conversation_id)
    return rows


def insert_rows(connection: sqlite3.Connection, rows: TableRows) -> None:
    """Insert them all. Raises Unfit when they contradict each other or the schema."""
    try:
        for table, members in rows.items():
            for columns, alike in groupby(members, key=tuple[str, ...]):
                into = _insert_at_once if table in _SEARCHED else _insert_each
                into(connection, table, columns, (tuple(row.values()) for row in alike))
    except sqlite3.IntegrityError as error:
        raise Unfit(f"The parts of this conversation are inconsistent ({error}).") from error


def _insert_each(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], values: Iterable[tuple[ColumnValue, ...]]
) -> None:
    marks = ", ".join("?" * len(columns))
    connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", values)


def _insert_at_once(
    connection: sqlite3.Connection, table: str, columns: Sequence[str], values: Iterable[tuple[ColumnValue, ...]]
) -> None:
    """Insert in one statement: the search index flushes its memory after each one, however little it holds."""
    names = ", ".join(columns)
    connection.execute("DROP TABLE IF EXISTS temp.staged")
    connection.execute(f"CREATE TEMP TABLE staged AS SELECT {names} FROM {table} LIMIT 0")
    _insert_each(connection, "temp.staged", columns, values)
    connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM temp.staged ORDER BY rowid")
    connection.execute("DROP TABLE temp.staged")


def has_taken_id(connection: sqlite3.Connection, rows: TableRows) -> bool:
    """True when any id of these rows is in use."""
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (row["id"],)).fetchone() is not None
        for table, members in rows.items()
        for row in members
        if "id" in row
    )


def make_fresh_ids(rows: TableRows) -> dict[ColumnValue, str]:
    """A new id for each row that has one of Phoenix's."""
    return {row["id"]: str(uuid4()) for members in rows.values() for row in members if isinstance(row.get("id"), str)}


def rename_rows(rows: TableRows, fresh: Mapping[ColumnValue, str]) -> TableRows:
    """The same conversation under fresh ids; the ids of tool uses stay, models know them."""
    result = {table: [_rename_row(row, fresh) for row in members] for table, members in rows.items()}
    for call in result.get("tool_calls", []):
        call["id"] = f"{call['assistant_message_id']}/{call['ordinal']}"
    return result


def _select_rows(
    connection: sqlite3.Connection, table: str, condition: str, order: str, conversation_id: str
) -> list[Row]:
    columns = list_columns(connection, table)
    rows = connection.execute(
        f"SELECT {', '.join(columns)} FROM {table} WHERE {condition} ORDER BY {order}", (conversation_id,)
    ).fetchall()
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _rename_row(row: Row, fresh: Mapping[ColumnValue, str]) -> Row:
    result: Row = {column: fresh.get(value, value) if column in _REFERENCES else value for column, value in row.items()}
    for column in ("content_json", "output_json"):
        text = row.get(column)
        if isinstance(text, str) and NAMES_AN_IMAGE in text:
            result[column] = rename_blocks(text, fresh)
    state = row.get("state_json")
    if isinstance(state, str):
        for old, new in fresh.items():
            state = state.replace(f'"{old}"', f'"{new}"')
        result["state_json"] = state
    return result


def rename_blocks(text: str, fresh: Mapping[str, str] | Mapping[ColumnValue, str]) -> str:
    """Blocks as JSON whose images have their fresh ids."""
    names = {str(old): new for old, new in fresh.items()}
    return encode_blocks([_rename_block(block, names) for block in decode_blocks(text)])


def _rename_block(block: Block, fresh: Mapping[str, str]) -> Block:
    match block:
        case ImageBlock(attachment_id=attachment_id):
            return replace(block, attachment_id=fresh.get(attachment_id, attachment_id))
        case ToolResultBlock(content=content):
            renamed_content = tuple(_rename_block(part, fresh) for part in content)
            return replace(block, content=cast("tuple[TextBlock | ImageBlock, ...]", renamed_content))
        case _:
            return block


_IS_COPY: Final = """EXISTS (SELECT 1 FROM copied_rows AS x WHERE x.id = {id}
    AND (EXISTS (SELECT 1 FROM {table} WHERE id = x.origin)
        OR EXISTS (SELECT 1 FROM copied_rows AS o WHERE o.origin = x.origin AND o.rowid < x.rowid)))"""
CALL_IS_COPY: Final = _IS_COPY.format(id="m.id", table="model_calls")
"""Condition for a row `m` of `model_calls`."""
TOOL_CALL_IS_COPY: Final = _IS_COPY.format(id="t.assistant_message_id", table="messages")
"""Condition for a row `t` of `tool_calls`, which has no row of its own: it is copied with its message."""


def keep_own_marks(rows: TableRows) -> list[Row]:
    """Marks of a file, without those that would make rows of another conversation copies."""
    own = {row.get("id") for table in ("model_calls", "messages") for row in rows[table]}
    return [row for row in rows["copied_rows"] if row.get("id") in own and row.get("origin")]


def mark_copies(rows: TableRows, fresh: Mapping[ColumnValue, str]) -> list[Row]:
    """A mark for each copied row; `rows` have their old ids, and a copy of a copy names the first of all."""
    known = {row["id"]: row["origin"] for row in rows["copied_rows"]}
    asking = {row["assistant_message_id"]: None for row in rows["tool_calls"]}
    copied: Sequence[ColumnValue] = [*(row["id"] for row in rows["model_calls"]), *asking]
    conversation_id = fresh[rows["conversations"][0]["id"]]
    return [{"id": fresh[old], "conversation_id": conversation_id, "origin": known.get(old, old)} for old in copied]


TOO_MANY: Final = f"This export has more than {MOST_TASKS} tasks on its board."
_LONGEST_DATA: Final = 1_000_000
"""Characters of the data of one task; Phoenix itself stores at most about a tenth."""
_WITHOUT_MESSAGES: Final = """DELETE FROM tracked_tasks WHERE conversation_id = :id
    AND created_at > (SELECT created_at FROM messages WHERE conversation_id = :id ORDER BY seq DESC LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM messages WHERE tracked_task_id = tracked_tasks.id)"""


def drop_later_tasks(connection: sqlite3.Connection, conversation_id: str) -> None:
    """Remove tasks of a copy up to a message that were made after that message and have none of those copied."""
    connection.execute(_WITHOUT_MESSAGES, {"id": conversation_id})
    tasks = [task for task in read_tasks(connection, conversation_id) if not task.is_planning]
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


def settle_imported_tasks(rows: TableRows) -> None:
    """Number the tasks of a file, cut their texts, and let none of its messages wait for a model.

    Raises:
        ImportRefused: there are more than a board holds.
    """
    tasks = rows.get("tracked_tasks", [])
    if len(tasks) > MOST_TASKS + 1:
        raise ImportRefused(TOO_MANY)
    tasks.sort(key=_order_of)
    planning = next((row for row in tasks if row.get("is_planning")), None)
    listed = [row for row in tasks if row is not planning]
    for order, row in enumerate(listed, start=1):
        row |= {"ord": order, "is_planning": 0}
    if planning is not None:
        planning["ord"] = 0
    for row in tasks:
        text = str(row.get("data_json") or "{}")
        data = decode_task(text)
        row["data_json"] = encode_task(
            TaskData(
                shorten_line(data.task_description, LONGEST_DESCRIPTION),
                tuple(shorten_line(line, LONGEST_PROGRESS) for line in data.progresses[-MOST_LINES:]),
                tuple(shorten_line(line, LONGEST_PREFERENCE) for line in data.user_preferences[-MOST_LINES:]),
            )
        )
    for message in rows["messages"]:
        if message.get("task_process_status") in {MessageTracking.PENDING, MessageTracking.RUNNING}:
            message["task_process_status"] = MessageTracking.DISABLED.value


def _order_of(row: Row) -> int:
    order = row.get("ord")
    return order if isinstance(order, int) else 0
