"""The rows of a whole conversation: read together, renamed together, inserted together."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias, cast
from uuid import uuid4

from msgspec.structs import replace

from engine.codec import decode_blocks, encode_blocks
from engine.machine.messages import Block, ImageBlock, TextBlock, ToolResultBlock
from engine.ports import NoConversation, StorageError

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


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table that go along."""
    rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return [row["name"] for row in rows if row["name"] not in _LEFT_OUT.get(table, frozenset())]


def read_rows(connection: sqlite3.Connection, conversation_id: str) -> TableRows:
    """Read all rows of a conversation. Raises StorageError when there is none."""
    rows = {
        table: _select(connection, table, condition, order, conversation_id)
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


def is_taken(connection: sqlite3.Connection, rows: TableRows) -> bool:
    """True when any id of these rows is in use."""
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (row["id"],)).fetchone() is not None
        for table, members in rows.items()
        for row in members
        if "id" in row
    )


def fresh_ids(rows: TableRows) -> dict[ColumnValue, str]:
    """A new id for each row that has one of Phoenix's."""
    return {row["id"]: str(uuid4()) for members in rows.values() for row in members if isinstance(row.get("id"), str)}


def renamed(rows: TableRows, fresh: Mapping[ColumnValue, str]) -> TableRows:
    """The same conversation under fresh ids; the ids of tool uses stay, models know them."""
    result = {table: [_renamed_row(row, fresh) for row in members] for table, members in rows.items()}
    for call in result.get("tool_calls", []):
        call["id"] = f"{call['assistant_message_id']}/{call['ordinal']}"
    return result


def _select(connection: sqlite3.Connection, table: str, condition: str, order: str, conversation_id: str) -> list[Row]:
    columns = columns_of(connection, table)
    rows = connection.execute(
        f"SELECT {', '.join(columns)} FROM {table} WHERE {condition} ORDER BY {order}", (conversation_id,)
    ).fetchall()
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _renamed_row(row: Row, fresh: Mapping[ColumnValue, str]) -> Row:
    result: Row = {column: fresh.get(value, value) if column in _REFERENCES else value for column, value in row.items()}
    for column in ("content_json", "output_json"):
        text = row.get(column)
        if isinstance(text, str) and NAMES_AN_IMAGE in text:
            result[column] = renamed_blocks(text, fresh)
    state = row.get("state_json")
    if isinstance(state, str):
        for old, new in fresh.items():
            state = state.replace(f'"{old}"', f'"{new}"')
        result["state_json"] = state
    return result


def renamed_blocks(text: str, fresh: Mapping[str, str] | Mapping[ColumnValue, str]) -> str:
    """Blocks as JSON whose images have their fresh ids."""
    names = {str(old): new for old, new in fresh.items()}
    return encode_blocks([_renamed_block(block, names) for block in decode_blocks(text)])


def _renamed_block(block: Block, fresh: Mapping[str, str]) -> Block:
    match block:
        case ImageBlock(attachment_id=attachment_id):
            return replace(block, attachment_id=fresh.get(attachment_id, attachment_id))
        case ToolResultBlock(content=content):
            renamed_content = tuple(_renamed_block(part, fresh) for part in content)
            return replace(block, content=cast("tuple[TextBlock | ImageBlock, ...]", renamed_content))
        case _:
            return block
