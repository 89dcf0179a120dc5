"""Copies a conversation, whole or up to a message, into one that stands on its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from engine.codec import decode_omitted, encode_omitted, encode_state, encode_totals
from engine.machine.states import STATE_NAMES, Idle
from engine.ports import StorageError
from engine.records import Totals
from engine.store import file_steps
from engine.store.copying import NAMES_AN_IMAGE, Row, columns_of, insert_rows, renamed_blocks
from engine.store.recovery import answer_dangling
from engine.store.tool_calls import interrupt_open

_COPIED = ("turns", "runs", "messages", "tool_calls", "attachments")
"""Tables that tell what was said, in an order that foreign keys accept; the others tell what happened to the source."""
_REFERENCES = frozenset({"id", "turn_id", "run_id", "trigger_message_id", "parent_run_id", "assistant_message_id"})
"""Columns that hold an id minted by Phoenix; what it names and was not copied keeps its old id."""
_INSTEAD = {
    ("messages", "tracked_task_id"): "NULL",
    ("messages", "task_process_status"): "NULL",
    ("runs", "turn_id"): "(SELECT new FROM temp.renamed WHERE old = s.turn_id)",
    ("runs", "status"): "CASE s.status WHEN 'running' THEN 'interrupted' ELSE s.status END",
    ("tool_calls", "id"): "(SELECT new FROM temp.renamed WHERE old = s.assistant_message_id) || '/' || s.ordinal",
}
"""What a column of the copy holds instead of the source's, which stands in `s`."""
_KEPT = {
    "messages": "s.conversation_id = :source AND s.seq <= :last",
    "turns": """s.conversation_id = :source AND EXISTS (SELECT 1 FROM messages AS m
        WHERE m.turn_id = s.id AND m.seq <= :last)""",
    "runs": """s.conversation_id = :source AND EXISTS (SELECT 1 FROM messages AS m
        WHERE m.run_id = s.id AND m.seq <= :last)""",
    "tool_calls": """s.conversation_id = :source AND EXISTS (SELECT 1 FROM messages AS m
        WHERE m.id = s.assistant_message_id AND m.seq <= :last)""",
    "attachments": "s.conversation_id = :source",
}
"""Which rows belong to the messages up to `:last`."""
_ALL = 1 << 62


def fork(connection: sqlite3.Connection, source_id: str, new_id: str, at: float, up_to_seq: int | None) -> None:
    """Insert the copy; calls without a result get the one of an interruption, so it can go on at once.

    Rows are copied inside SQLite: read, renamed and written in Python, 50,000 messages took four times as long.
    """
    columns = columns_of(connection, "conversations")
    found = connection.execute(f"SELECT {', '.join(columns)} FROM conversations WHERE id = ?", (source_id,)).fetchone()
    if found is None:
        raise StorageError(f"There is no conversation {source_id}: list them to see which there are.")
    row = _fresh_start(dict(zip(columns, found, strict=True)), at, up_to_seq) | {"id": new_id}
    last = _ALL if up_to_seq is None else up_to_seq
    row |= {"branch_of": source_id, "branch_seq": min(last, _newest(connection, source_id))}
    insert_rows(connection, {"conversations": [row]})
    _copy(connection, {"source": source_id, "new": new_id, "last": last})
    file_steps.copy(connection, source_id, new_id, last)
    interrupt_open(connection, new_id, at)
    answer_dangling(connection, new_id, "", at)


def _newest(connection: sqlite3.Connection, conversation_id: str) -> int:
    found = connection.execute("SELECT MAX(seq) FROM messages WHERE conversation_id = ?", (conversation_id,)).fetchone()
    return _number(found[0])


def _copy(connection: sqlite3.Connection, names: Mapping[str, str | int]) -> None:
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS renamed (old TEXT PRIMARY KEY, new TEXT) WITHOUT ROWID")
    connection.execute("DELETE FROM temp.renamed")
    for table in _COPIED:
        if table != "tool_calls":  # they are named after their message
            connection.execute(
                "INSERT INTO temp.renamed SELECT s.id, lower(hex(randomblob(16)))"
                f" FROM {table} AS s WHERE {_KEPT[table]}",
                names,
            )
    for table in _COPIED:
        columns = columns_of(connection, table)
        values = ", ".join(_value(table, column) for column in columns)
        connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} AS s"
            f" WHERE {_KEPT[table]} ORDER BY s.rowid",
            names,
        )
    _rename_images(connection, str(names["new"]))
    connection.execute("DELETE FROM temp.renamed")


def _value(table: str, column: str) -> str:
    if column == "conversation_id":
        return ":new"
    if (table, column) in _INSTEAD:
        return _INSTEAD[table, column]
    if column in _REFERENCES:
        return f"COALESCE((SELECT new FROM temp.renamed WHERE old = s.{column}), s.{column})"
    return f"s.{column}"


def _rename_images(connection: sqlite3.Connection, new_id: str) -> None:
    """Blocks name images by id; only conversations that have any are searched for them."""
    fresh: dict[str, str] = dict(
        connection.execute(
            "SELECT old, new FROM temp.renamed WHERE new IN (SELECT id FROM attachments WHERE conversation_id = ?)",
            (new_id,),
        ).fetchall()
    )
    for table, column in (("messages", "content_json"), ("tool_calls", "output_json")) if fresh else ():
        rows = connection.execute(
            f"SELECT id, {column} FROM {table} WHERE conversation_id = ? AND instr({column}, ?)",
            (new_id, NAMES_AN_IMAGE),
        ).fetchall()
        for row in rows:
            renamed = renamed_blocks(row[1], fresh)
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (renamed, row[0]))


def _fresh_start(source: Row, at: float, up_to_seq: int | None) -> Row:
    """The row of the copy: the same setting, nothing spent, nothing pending."""
    summarized = up_to_seq is None or _number(source["context_start_seq"]) <= up_to_seq
    beginning: Row = {
        "kind": "user",
        "spawn_mode": None,
        "spawn_tool_use_id": None,
        "slug": None,
        "state": STATE_NAMES[Idle],
        "state_json": encode_state(Idle(0)),
        "gen": 0,
        "totals_json": encode_totals(Totals()),
        "context_tokens": source["context_tokens"] if up_to_seq is None else 0,
        "context_estimated": source["context_estimated"] if up_to_seq is None else 1,
        "summary": source["summary"] if summarized else "",
        "context_start_seq": source["context_start_seq"] if summarized else 0,
        "context_omitted_json": _omitted_up_to(source, up_to_seq),
        "context_earlier_json": source["context_earlier_json"] if summarized else "[]",
        "draft": "",
        "scroll_seq": 0,
        "unread": 0,
        "pinned_at": None,
        "result_status": None,
        "result_text": None,
        "result_error": None,
        "archived_at": None,
        "deleted_at": None,
        "created_at": at,
        "updated_at": at,
    }
    return source | beginning


def _omitted_up_to(source: Row, up_to_seq: int | None) -> str:
    """Behind the cut other messages will take the same numbers."""
    omitted = decode_omitted(str(source["context_omitted_json"]))
    return encode_omitted([each for each in omitted if up_to_seq is None or each.seq <= up_to_seq])


def _number(value: str | int | float | None) -> int:
    return value if isinstance(value, int) else 0
