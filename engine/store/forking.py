"""Copies a conversation, whole or up to a message, into an independent one."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from uuid import uuid4

from engine.codec import decode_omitted, encode_omitted, encode_state, encode_totals, storable
from engine.machine.messages import NewMessage, Origin, Role, TextBlock
from engine.machine.states import STATE_NAMES, Idle
from engine.ports import AppendMessage, NoConversation, StorageError
from engine.records import ForkPlace, SideExchange
from engine.records.runs import Totals
from engine.store.copying import NAMES_AN_IMAGE, Row, drop_later_tasks, insert_rows, list_columns, rename_blocks
from engine.store.messages import append_message, read_newest_visible, read_tracking
from engine.store.recovery import answer_dangling_calls
from engine.store.slices import find_slice_end
from engine.store.tool_calls import interrupt_open_calls, read_todos_at

_IN_SLICE = {
    "turns": "s.id IN (SELECT turn_id FROM messages WHERE conversation_id = :source AND seq BETWEEN :first AND :last)",
    "runs": "s.id IN (SELECT run_id FROM messages WHERE conversation_id = :source AND seq BETWEEN :first AND :last)",
    "messages": "s.conversation_id = :source AND s.seq BETWEEN :first AND :last",
    "tool_calls": """s.assistant_message_id IN
        (SELECT id FROM messages WHERE conversation_id = :source AND seq BETWEEN :first AND :last)""",
}
"""Tables of the conversation's contents, in an order that foreign keys accept, and their rows for the messages `:first`
to `:last`; the other tables describe the source's own history.
"""
_SEVERAL = frozenset({"turns", "runs"})
"""Tables whose rows belong to several messages, and so maybe to several slices."""
_REFERENCES = frozenset({"id", "turn_id", "run_id", "trigger_message_id", "parent_run_id", "assistant_message_id"})
"""Columns that hold an id made by Phoenix; a reference to an uncopied row keeps its old id."""
_INSTEAD = {
    ("messages", "tracked_task_id"): "(SELECT new FROM temp.renamed WHERE old = s.tracked_task_id)",
    ("messages", "task_process_status"): "CASE s.task_process_status WHEN 'running' THEN 'pending'"
    " ELSE s.task_process_status END",
    ("runs", "turn_id"): "(SELECT new FROM temp.renamed WHERE old = s.turn_id)",
    ("runs", "status"): "CASE s.status WHEN 'running' THEN 'interrupted' ELSE s.status END",
    ("runs", "usage_json"): "NULL",
    ("runs", "model_usage_json"): "NULL",
    ("runs", "cost_usd"): "NULL",
    ("runs", "retries"): "0",
    ("tool_calls", "id"): "(SELECT new FROM temp.renamed WHERE old = s.assistant_message_id) || '/' || s.ordinal",
}
"""Values of columns of the copy that differ from the source row `s`."""
_ALL = 1 << 62


class Fork:
    """One copy in the making (`engine.store.slices`); one at a time, since their new ids share a table.

    Rows are copied inside SQLite: read, renamed and written in Python, 50,000 messages took four times as long.
    """

    def __init__(
        self,
        source_id: str,
        new_id: str,
        at: float,
        up_to_seq: int | None,
        beside: Sequence[SideExchange] = (),
        place: ForkPlace | None = None,
    ) -> None:
        self.conversation_id = new_id
        self._source_id = source_id
        self._at = at
        self._up_to_seq = up_to_seq
        self._beside = beside
        self._place = place
        self._last = 0
        self._copied = 0
        """The newest message that was copied."""

    def begin(self, connection: sqlite3.Connection, by: str) -> None:
        """Insert the row of the copy, and its images. Raises StorageError where there is no source."""
        columns, source_id = list_columns(connection, "conversations"), self._source_id
        found = connection.execute(
            f"SELECT {', '.join(columns)} FROM conversations WHERE id = ? AND partial IS NULL", (source_id,)
        ).fetchone()
        if found is None:
            raise NoConversation(source_id)
        row = _reset_row(dict(zip(columns, found, strict=True)), self._at, self._up_to_seq)
        wished = _ALL if self._up_to_seq is None else self._up_to_seq
        self._last = min(wished, _find_newest_seq(connection, source_id))
        if self._up_to_seq is not None:
            row |= _cut_plan(connection, source_id, row, self._last)
        if self._place is not None:
            place = self._place
            prompt = str(row["append_system_prompt"])
            appended = "\n\n".join(filter(None, (prompt.strip(), place.note)))
            row |= {"cwd": storable(str(place.cwd)), "append_system_prompt": storable(appended)}
        row |= {"id": self.conversation_id, "branch_of": source_id, "branch_seq": self._last, "partial": by}
        insert_rows(connection, {"conversations": [row]})
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS renamed (old TEXT PRIMARY KEY, new TEXT) WITHOUT ROWID")
        connection.execute("DELETE FROM temp.renamed")
        self._name(connection, "attachments", "s.conversation_id = :source", {})
        self._copy(connection, "attachments", "s.conversation_id = :source", {})
        self._name(connection, "tracked_tasks", "s.conversation_id = :source", {})
        self._copy(connection, "tracked_tasks", "s.conversation_id = :source", {})

    def go_on(self, connection: sqlite3.Connection, size: int) -> bool:
        """Copy messages with about `size` bytes of text. Raises StorageError where the source was removed."""
        end = find_slice_end(connection, self._source_id, self._copied, size)
        if end is None and self._copied < self._last:
            raise StorageError("The conversation was deleted while it was being copied.")
        if end is not None and self._copied < self._last:
            first, last = self._copied + 1, min(end, self._last)
            values = {"first": first, "last": last}
            for table, condition in _IN_SLICE.items():
                if table != "tool_calls":  # they are named after their message
                    self._name(connection, table, condition, values)
            for table, condition in _IN_SLICE.items():
                self._copy(connection, table, condition, values)
            _rename_images(connection, self.conversation_id, first, last)
            self._copied = last
        return self._copied >= self._last

    def finish(self, connection: sqlite3.Connection) -> None:
        """Give calls without a result that of an interruption, so that the copy can continue at once."""
        new_id = self.conversation_id
        if self._place is None:  # its files are those of another folder: rewinding would write there
            copy_steps(connection, self._source_id, new_id, self._last)
        if self._up_to_seq is not None:
            drop_later_tasks(connection, new_id)
        interrupt_open_calls(connection, new_id, self._at)
        answer_dangling_calls(connection, new_id, "", self._at)
        for exchange in self._beside:
            _add_exchange(connection, new_id, exchange, self._at)
        connection.execute("DELETE FROM temp.renamed")
        connection.execute("UPDATE conversations SET partial = NULL WHERE id = ?", (new_id,))

    def _name(self, connection: sqlite3.Connection, table: str, condition: str, values: Mapping[str, int]) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO temp.renamed SELECT s.id, lower(hex(randomblob(16)))"
            f" FROM {table} AS s WHERE {condition}",
            {"source": self._source_id, **values},
        )

    def _copy(self, connection: sqlite3.Connection, table: str, condition: str, values: Mapping[str, int]) -> None:
        names: dict[str, str | int] = {"source": self._source_id, "new": self.conversation_id, **values}
        if table in _SEVERAL:
            renamed = "(SELECT new FROM temp.renamed WHERE old = s.id)"
            condition += f" AND s.conversation_id = :source AND NOT EXISTS (SELECT 1 FROM {table} WHERE id = {renamed})"
        columns = list_columns(connection, table)
        connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(_copy_of(table, one) for one in columns)}"
            f" FROM {table} AS s WHERE {condition} ORDER BY s.rowid",
            names,
        )


def _add_exchange(connection: sqlite3.Connection, conversation_id: str, exchange: SideExchange, at: float) -> None:
    """Append a question of the user and its answer; they join a turn that has no answer yet (SPEC UNI-06)."""
    newest = read_newest_visible(connection, conversation_id)
    begins = newest is None or newest.role is Role.ASSISTANT
    tracking = read_tracking(connection, conversation_id)
    for role, origin, text in (
        (Role.USER, Origin.HUMAN, exchange.question),
        (Role.ASSISTANT, Origin.LLM, exchange.answer),
    ):
        message = NewMessage(str(uuid4()), role, origin, (TextBlock(text),))
        addition = AppendMessage(message, new_turn=begins and role is Role.USER)
        append_message(connection, conversation_id, addition, at, tracking)


def _find_newest_seq(connection: sqlite3.Connection, conversation_id: str) -> int:
    found = connection.execute("SELECT MAX(seq) FROM messages WHERE conversation_id = ?", (conversation_id,)).fetchone()
    return _as_number(found[0])


def _copy_of(table: str, column: str) -> str:
    if column == "conversation_id":
        return ":new"
    if (table, column) in _INSTEAD:
        return _INSTEAD[table, column]
    if column in _REFERENCES:
        return f"COALESCE((SELECT new FROM temp.renamed WHERE old = s.{column}), s.{column})"
    return f"s.{column}"


def _rename_images(connection: sqlite3.Connection, new_id: str, first: int, last: int) -> None:
    """Blocks name images by id; only conversations that have any are searched for them."""
    fresh: dict[str, str] = dict(
        connection.execute(
            "SELECT old, new FROM temp.renamed WHERE new IN (SELECT id FROM attachments WHERE conversation_id = ?)",
            (new_id,),
        ).fetchall()
    )
    here = "FROM messages WHERE conversation_id = ? AND seq BETWEEN ? AND ?"
    tables = (
        ("messages", "content_json", f"id IN (SELECT id {here})"),
        ("tool_calls", "output_json", f"assistant_message_id IN (SELECT id {here})"),
    )
    for table, column, condition in tables if fresh else ():
        rows = connection.execute(
            f"SELECT id, {column} FROM {table} WHERE {condition} AND instr({column}, ?)",
            (new_id, first, last, NAMES_AN_IMAGE),
        ).fetchall()
        for row in rows:
            renamed = rename_blocks(row[1], fresh)
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (renamed, row[0]))


def _reset_row(source: Row, at: float, up_to_seq: int | None) -> Row:
    """The row of the copy: the same setting, nothing spent, nothing pending."""
    summarized = up_to_seq is None or _as_number(source["context_start_seq"]) <= up_to_seq
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
        "context_omitted_json": _cut_omitted(source, up_to_seq),
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


def _cut_plan(connection: sqlite3.Connection, source_id: str, source: Row, seq: int) -> Row:
    """The todo list as it was at the cut, and the plan where it had been accepted by then."""
    row: Row = {"todos_json": read_todos_at(connection, source_id, str(source["todos_json"]), seq)}
    return row if _as_number(source["plan_at"]) <= seq else row | {"plan_text": "", "plan_at": 0}


def _cut_omitted(source: Row, up_to_seq: int | None) -> str:
    """Omissions up to the cut: behind it other messages will take the same numbers."""
    omitted = decode_omitted(str(source["context_omitted_json"]))
    return encode_omitted([each for each in omitted if up_to_seq is None or each.seq <= up_to_seq])


def _as_number(value: str | int | float | None) -> int:
    return value if isinstance(value, int) else 0


def copy_steps(connection: sqlite3.Connection, source_id: str, new_id: str, last_seq: int) -> None:
    """Give a fork the steps of the messages that it shares; open steps stay with the source."""
    connection.execute(
        """INSERT INTO file_steps (id, conversation_id, kind, state, seq, folder, look, began, changes, coverage,
            target_seq) SELECT lower(hex(randomblob(16))), ?, kind, state, seq, folder, look, began, changes, coverage,
            target_seq FROM file_steps WHERE conversation_id = ? AND seq <= ? AND state = 'done'
            ORDER BY began, rowid""",
        (new_id, source_id, last_seq),
    )
