"""Export of a conversation as one JSON document (CONTRACT 1), and its import on the terms of the importing user."""

from __future__ import annotations

import base64
import binascii
import re
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast
from uuid import uuid4

from engine.codec import decode_blocks, encode_state, encode_totals, storable
from engine.machine.messages import Block, ImageBlock, ToolResultBlock
from engine.machine.states import STATE_NAMES, Completed, Failed, Idle, State
from engine.ports import ImportRefused, ImportTerms
from engine.records import AgentFacts, SpawnMode, TitleBy
from engine.records.runs import Totals
from engine.store.conversations import list_agent_ids
from engine.store.copying import (
    NAMES_AN_IMAGE,
    TABLES,
    ColumnValue,
    Row,
    TableRows,
    Unfit,
    has_taken_id,
    insert_rows,
    keep_own_marks,
    list_columns,
    make_fresh_ids,
    mark_copies,
    read_rows,
    rename_blocks,
    rename_rows,
    settle_imported_tasks,
)
from engine.store.import_columns import ID, TAKEN, WrongValue
from engine.store.messages import hash_content, join_text, read_attachment_file, store_file
from engine.store.model_calls import settle_model_calls
from engine.store.names import give_slug
from engine.store.recovery import answer_dangling_calls
from engine.store.tool_calls import interrupt_open_calls
from engine.store.traces import fill_in_aside_spans
from tools.clean import clean_line
from tools.contract import JsonObject, JsonValue
from tools.wording import one_line, pluralize

NO_EXPORT: Final = "This is not a Phoenix export; `conversations export --format json` writes one."
_UNFIT: Final = "The parts of this conversation are inconsistent"
_AGENT_ID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""Pattern of ids that Phoenix makes: only these are renamed inside texts."""
_TELLING: Final = frozenset({"content_json", "text", "input_json", "output_text", "output_json", "display_json"})
"""Columns whose text may name a sub-agent."""
_OWN: Final = {
    ("messages", "turn_id"): "turns",
    ("tool_calls", "assistant_message_id"): "messages",
    ("traces", "run_id"): "runs",
    ("spans", "trace_id"): "traces",
}
"""References that a row requires: their target is in the same conversation of the same file."""
_LOOSE: Final = {
    ("runs", "turn_id"): "turns",
    ("runs", "trigger_message_id"): "messages",
    ("messages", "run_id"): "runs",
    ("messages", "tracked_task_id"): "tracked_tasks",
    ("tool_calls", "run_id"): "runs",
    ("model_calls", "run_id"): "runs",
    ("model_calls", "message_id"): "messages",
    ("spans", "parent_span_id"): "spans",
}
"""References that are dropped when the file does not contain their target."""
_LIMITS: Final = AgentFacts("", SpawnMode.FAN_IN, "", 1, "")


def parse_rows(connection: sqlite3.Connection, tables: JsonValue) -> TableRows:
    """Every row of one conversation, each value checked. Raises ImportRefused."""
    if not isinstance(tables, dict):
        raise ImportRefused(NO_EXPORT)
    rows = {table: [_parse_row(each) for each in parse_list(tables.get(table, []))] for table in TABLES}
    if len(rows["conversations"]) != 1 or not _has_id(rows["conversations"][0]):
        raise ImportRefused(NO_EXPORT)
    for table, members in rows.items():
        known = {*list_columns(connection, table)}
        checks = TAKEN.get(table, {})
        for row in members:
            if "id" in checks and row.get("id") is None:
                raise WrongValue(table, "id", None)
            for column, value in row.items():
                if column not in known:
                    shown = storable(f"{table}.{column}"[:60])
                    raise ImportRefused(f"This export has an unknown part: {shown}.")
                if value is not None and column in checks and not checks[column](value):
                    raise WrongValue(table, column, value)
    return rows


def parse_list(value: JsonValue) -> list[JsonValue]:
    """A list. Raises ImportRefused."""
    if not isinstance(value, list):
        raise ImportRefused(NO_EXPORT)
    return value


def accept_rows(rows: TableRows, terms: ImportTerms, parent_id: str) -> TableRows:
    """Accepted form of these rows; a sub-agent has a parent. Raises ImportRefused."""
    conversation = _accept_conversation(rows["conversations"][0], terms, parent_id)
    own: ColumnValue = conversation["id"]
    result: TableRows = {"conversations": [conversation]}
    for table in TABLES:
        if table in TAKEN and table != "conversations":
            kept = TAKEN[table]
            members = [{name: cell for name, cell in row.items() if name in kept} for row in rows[table]]
            result[table] = [row if table == "spans" else {**row, "conversation_id": own} for row in members]
    _settle(result)
    return result


def free_ids(connection: sqlite3.Connection, found: Sequence[TableRows]) -> list[TableRows]:
    """The same conversations, under fresh ids where any of theirs is in use; a sub-agent's also in every text."""
    if not any(has_taken_id(connection, rows) for rows in found):
        return list(found)
    fresh = {old: new for rows in found for old, new in make_fresh_ids(rows).items()}
    result = [{**rename_rows(rows, fresh), "copied_rows": mark_copies(rows, fresh)} for rows in found]
    called = {str(rows["conversations"][0]["id"]): fresh[rows["conversations"][0]["id"]] for rows in found[1:]}
    for rows in result[1:]:
        rows["conversations"][0]["parent_id"] = result[0]["conversations"][0]["id"]
    for rows in result:
        for row in (*rows["messages"], *rows["tool_calls"]):
            row.update({column: _rename_agents(cell, called) for column, cell in row.items() if column in _TELLING})
    return result


def name_own_images(found: Sequence[TableRows]) -> None:
    """An image that the file does not hold gets a name that nothing has, so that it shows none of this machine's."""
    known = {str(row["id"]) for rows in found for row in rows["attachments"]}
    for rows in found:
        for table, column in (("messages", "content_json"), ("tool_calls", "output_json")):
            for row in rows[table]:
                cell = row.get(column)
                if isinstance(cell, str) and NAMES_AN_IMAGE in cell:
                    foreign = set(_find_images(decode_blocks(cell))) - known
                    row[column] = rename_blocks(cell, {one: str(uuid4()) for one in foreign}) if foreign else cell


def _parse_row(value: JsonValue) -> Row:
    if not isinstance(value, dict) or any(isinstance(item, list | dict) for item in value.values()):
        raise ImportRefused(NO_EXPORT)
    row = cast("Row", value)
    return {column: storable(cell) if isinstance(cell, str) else cell for column, cell in row.items()}


def _has_id(row: Row) -> bool:
    found = row.get("id")
    return isinstance(found, str) and ID.fullmatch(found) is not None


def _accept_conversation(row: Row, terms: ImportTerms, parent_id: str) -> Row:
    """Row of an idle conversation, with the settings of the importing user."""
    state = _final_state(row) if parent_id else Idle(0)
    shared: Row = {
        "model": terms.model,
        "cwd": storable(str(terms.cwd)),
        "permission_mode": terms.permission_mode.value,
        "sandbox": terms.sandbox.value,
        "state": STATE_NAMES[type(state)],
        "state_json": encode_state(state),
        "gen": 0,
    }
    result = {name: cell for name, cell in row.items() if name in TAKEN["conversations"]} | shared
    if row.get("model") != terms.model:
        result.pop("context_window", None)
    result["totals_json"] = result.get("totals_json") or encode_totals(Totals())
    for column in ("context_omitted_json", "context_earlier_json"):
        result[column] = result.get(column) or "[]"
    result.setdefault("title_by", TitleBy.USER.value if result.get("title") else "")
    agent: Row = {
        "kind": "subagent",
        "user_initiated": 0,
        "parent_id": parent_id,
        "max_iterations": _LIMITS.max_turns,
        "agent_timeout": _LIMITS.timeout,
        "auto_wake": 0,
    }
    return result | (agent if parent_id else {"kind": "user"})


def _final_state(row: Row) -> State:
    """Final state of a sub-agent; one that was at work counts as cancelled."""
    words = str(row.get("result_text") or "")
    if row.get("result_status") == "success":
        return Completed(0, words)
    if not row.get("result_status"):
        row["result_status"] = "cancelled"
    return Failed(0, str(row["result_status"]), str(row.get("result_error") or ""), words)


def _settle(rows: TableRows) -> None:
    """Refer to rows of this conversation alone."""
    ids = {table: {row.get("id") for row in members} for table, members in rows.items()}
    for (table, column), target in _OWN.items():
        if any(row.get(column) not in ids[target] for row in rows[table]):
            raise ImportRefused(f"{_UNFIT} ({table}.{column} names none of its {target}).")
    for (table, column), target in _LOOSE.items():
        for row in rows[table]:
            if row.get(column) not in ids[target]:
                row.pop(column, None)
    rows["copied_rows"] = keep_own_marks(rows)
    _put_in_order(rows)
    settle_imported_tasks(rows)


def _put_in_order(rows: TableRows) -> None:
    rows["messages"].sort(key=_seq_of)
    if [row.get("seq") for row in rows["messages"]] != list(range(1, len(rows["messages"]) + 1)):
        raise ImportRefused(f"{_UNFIT} (its messages are not numbered from 1 on).")
    for row in rows["messages"]:
        row["text"] = join_text(decode_blocks(str(row.get("content_json") or "[]")))
    for row in rows["tool_calls"]:
        row["id"] = f"{row['assistant_message_id']}/{row.get('ordinal')}"
    for row in rows["runs"]:
        row["status"] = "interrupted" if row.get("status") == "running" else row.get("status")
    for row in rows["traces"]:
        row["status"] = "cancelled" if row.get("status") == "running" else row.get("status")


def _seq_of(row: Row) -> int:
    seq = row.get("seq")
    return seq if isinstance(seq, int) else 0


def _rename_agents(cell: ColumnValue, called: Mapping[str, str]) -> ColumnValue:
    if not isinstance(cell, str) or not called:
        return cell
    return _AGENT_ID.sub(lambda match: called.get(match[0], match[0]), cell)


def _find_images(blocks: Iterable[Block]) -> Iterable[str]:
    for block in blocks:
        if isinstance(block, ImageBlock):
            yield block.attachment_id
        elif isinstance(block, ToolResultBlock):
            yield from _find_images(block.content)


FORMAT = "phoenix-conversation"
FORMAT_VERSION = 1


def export_conversation(connection: sqlite3.Connection, folder: Path, conversation_id: str) -> JsonObject:
    """`{"format", "version", "tables": {table: [row]}, "agents": [tables], "files": {sha256: base64}}`."""
    rows = read_rows(connection, conversation_id)
    below = [read_rows(connection, agent_id) for agent_id in list_agent_ids(connection, conversation_id)]
    digests = {str(row["path"]) for tables in (rows, *below) for row in tables["attachments"]}
    files = {digest: read_attachment_file(folder, digest) for digest in sorted(digests)}
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "tables": cast("JsonObject", rows),
        "agents": cast("list[JsonValue]", below),
        "files": {digest: base64.b64encode(data).decode() for digest, data in files.items() if data is not None},
    }


ROW_BYTES = 200
"""Cost of a row in bytes besides its texts."""
_QUOTED = 60
"""Characters of the file's own words quoted in a message."""
_SETTINGS = {
    "system_prompt_static": "its system prompt",
    "append_system_prompt": "its appended system prompt",
    "profile": "its profile",
    "draft": "its draft",
    "archived_at": "its place in the archive",
    "deleted_at": "its place in the trash",
    "pinned_at": "its pin",
    "supervisor": "its supervisor",
    "compact_percent": "its compaction threshold",
}
"""Columns that are left out and named where they held something."""
_PENDING = {"queued_messages": "queued message", "inbox": "undelivered note"}
_DAMAGED = "An image of this export is damaged; export the conversation again."


class Import:
    """One import in the making (`engine.store.slices`)."""

    def __init__(
        self, folder: Path, found: Sequence[TableRows], contents: Sequence[bytes], left_out: tuple[str, ...], at: float
    ) -> None:
        """The first of `found` is the conversation, the others are its sub-agents."""
        self.left_out = left_out
        self._folder = folder
        self._contents = contents
        self._at = at
        self._ids = [str(rows["conversations"][0]["id"]) for rows in found]
        self._first = found[0]["conversations"][0]
        self._rest = deque((table, row) for table in TABLES for rows in found for row in rows.get(table, ()))
        self._rest.popleft()

    @property
    def conversation_id(self) -> str:
        """The one that is being made."""
        return self._ids[0]

    def begin(self, connection: sqlite3.Connection, by: str) -> None:
        """Insert the row of the conversation. Raises ImportRefused where its id was taken meanwhile."""
        _insert(connection, {"conversations": [{**self._first, "partial": by}]})

    def go_on(self, connection: sqlite3.Connection, size: int) -> bool:
        """Insert rows with about `size` bytes of text; a message may name a run that comes with them only."""
        slice_: TableRows = {}
        while self._rest and size > 0:
            table, row = self._rest.popleft()
            slice_.setdefault(table, []).append(row)
            size -= ROW_BYTES + sum(len(value) for value in row.values() if isinstance(value, str))
        _insert(connection, slice_)
        return not self._rest

    def finish(self, connection: sqlite3.Connection) -> None:
        """Store its files, end its open calls, and make it visible."""
        for content in self._contents:
            store_file(self._folder, content)
        for conversation_id in self._ids:
            interrupt_open_calls(connection, conversation_id, self._at)
            answer_dangling_calls(connection, conversation_id, "", self._at)
            settle_model_calls(connection, conversation_id)
            fill_in_aside_spans(connection, conversation_id)
        connection.execute("UPDATE conversations SET partial = NULL WHERE id = ?", (self.conversation_id,))
        give_slug(connection, self.conversation_id)


def prepare_import(
    connection: sqlite3.Connection, folder: Path, document: JsonObject, terms: ImportTerms, at: float
) -> Import:
    """Read and check the output of `export`; writes nothing.

    Raises:
        ImportRefused: it is no such document, or its parts cannot be.
    """
    if document.get("format") != FORMAT:
        raise ImportRefused(NO_EXPORT)
    if document.get("version") != FORMAT_VERSION:
        raise ImportRefused("This export has an unknown format; update Phoenix to read it.")
    given = [
        parse_rows(connection, tables) for tables in (document.get("tables"), *parse_list(document.get("agents", [])))
    ]
    parent_id = str(given[0]["conversations"][0]["id"])
    left_out = list(_describe_left_out(given, terms))
    found = [accept_rows(rows, terms, parent_id if number else "") for number, rows in enumerate(given)]
    contents = _decode_files(document)
    missing = _keep_images(found, contents)
    if missing:
        left_out.append(f"{pluralize(missing, 'image')} without contents in the file")
    name_own_images(found)
    found = free_ids(connection, found)
    wanted = {str(row["path"]) for rows in found for row in rows["attachments"]}
    return Import(folder, found, [contents[digest] for digest in sorted(wanted)], tuple(left_out), at)


def _insert(connection: sqlite3.Connection, rows: TableRows) -> None:
    try:
        insert_rows(connection, rows)
    except Unfit as error:
        raise ImportRefused(str(error)) from error


def _describe_left_out(given: Sequence[TableRows], terms: ImportTerms) -> Iterator[str]:
    """Describe the settings and the pending work of the file."""
    first = given[0]["conversations"][0]
    own: Row = {
        "permission_mode": terms.permission_mode.value,
        "sandbox": terms.sandbox.value,
        "model": terms.model,
        "cwd": str(terms.cwd),
    }
    names = {"permission_mode": "permission mode", "sandbox": "sandbox", "model": "model", "cwd": "folder"}
    for column, name in names.items():
        if first.get(column) and first[column] != own[column]:
            yield f"its {name} {_quote(first[column])}"
    yield from (name for column, name in _SETTINGS.items() if first.get(column))
    if first.get("state") not in {None, "idle"}:
        yield "its unfinished turn"
    for table, name in _PENDING.items():
        if number := sum(len(rows[table]) for rows in given):
            yield pluralize(number, name)


def _quote(value: object) -> str:
    return one_line(clean_line(str(value)[: _QUOTED * 4]), _QUOTED)


def _decode_files(document: JsonObject) -> dict[str, bytes]:
    """The contents of the files by their SHA-256, which is reckoned here and not believed."""
    files = document.get("files")
    if not isinstance(files, dict):
        raise ImportRefused(NO_EXPORT)
    contents: dict[str, bytes] = {}
    for digest, encoded in files.items():
        try:
            content = base64.b64decode(encoded if isinstance(encoded, str) else "?", validate=True)
        except (binascii.Error, ValueError) as error:
            raise ImportRefused(_DAMAGED) from error
        if hash_content(content) != digest:
            raise ImportRefused(_DAMAGED)
        contents[digest] = content
    return contents


def _keep_images(found: Sequence[TableRows], contents: Mapping[str, bytes]) -> int:
    """Keep the rows whose contents the file holds, named by them; returns how many are missing."""
    missing = 0
    for rows in found:
        kept: list[Row] = []
        for row in rows["attachments"]:
            digest = str(row.get("sha256"))
            if digest in contents:
                kept.append({**row, "path": digest, "bytes": len(contents[digest])})
            else:
                missing += 1
        rows["attachments"] = kept
    return missing
