"""The rows of an export as they may be stored: own ids and references only, no settings, nothing that would act."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast
from uuid import uuid4

from engine.codec import decode_blocks, encode_state, encode_totals, storable
from engine.machine.messages import Block, ImageBlock, ToolResultBlock
from engine.machine.states import STATE_NAMES, Completed, Failed, Idle, State
from engine.ports import ImportRefused, ImportTerms
from engine.records import AgentFacts, SpawnMode, TitleBy
from engine.records.totals import Totals
from engine.store import copied_rows
from engine.store.copying import (
    NAMES_AN_IMAGE,
    TABLES,
    ColumnValue,
    Row,
    TableRows,
    columns_of,
    fresh_ids,
    is_taken,
    renamed,
    renamed_blocks,
)
from engine.store.import_columns import ID, TAKEN, WrongValue
from engine.store.messages import plain_text
from engine.store.task_copies import settle_imported
from tools.contract import JsonValue

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
    rows = {table: [_parsed(each) for each in parse_list(tables.get(table, []))] for table in TABLES}
    if len(rows["conversations"]) != 1 or not _has_id(rows["conversations"][0]):
        raise ImportRefused(NO_EXPORT)
    for table, members in rows.items():
        _check(table, members, {*columns_of(connection, table)})
    return rows


def parse_list(value: JsonValue) -> list[JsonValue]:
    """A list. Raises ImportRefused."""
    if not isinstance(value, list):
        raise ImportRefused(NO_EXPORT)
    return value


def taken(rows: TableRows, terms: ImportTerms, parent_id: str) -> TableRows:
    """Accepted form of these rows; a sub-agent has a parent. Raises ImportRefused."""
    conversation = _conversation(rows["conversations"][0], terms, parent_id)
    own: ColumnValue = conversation["id"]
    result: TableRows = {"conversations": [conversation]}
    for table in TABLES:
        if table in TAKEN and table != "conversations":
            kept = TAKEN[table]
            members = [{name: cell for name, cell in row.items() if name in kept} for row in rows[table]]
            result[table] = [row if table == "spans" else {**row, "conversation_id": own} for row in members]
    _settle(result)
    return result


def under_free_ids(connection: sqlite3.Connection, found: Sequence[TableRows]) -> list[TableRows]:
    """The same conversations, under fresh ids where any of theirs is in use; a sub-agent's also in every text."""
    if not any(is_taken(connection, rows) for rows in found):
        return list(found)
    fresh = {old: new for rows in found for old, new in fresh_ids(rows).items()}
    result = [{**renamed(rows, fresh), "copied_rows": copied_rows.marked(rows, fresh)} for rows in found]
    called = {str(rows["conversations"][0]["id"]): fresh[rows["conversations"][0]["id"]] for rows in found[1:]}
    for rows in result[1:]:
        rows["conversations"][0]["parent_id"] = result[0]["conversations"][0]["id"]
    for rows in result:
        for row in (*rows["messages"], *rows["tool_calls"]):
            row.update({column: _told(cell, called) for column, cell in row.items() if column in _TELLING})
    return result


def name_own_images(found: Sequence[TableRows]) -> None:
    """An image that the file does not hold gets a name that nothing has, so that it shows none of this machine's."""
    known = {str(row["id"]) for rows in found for row in rows["attachments"]}
    for rows in found:
        for table, column in (("messages", "content_json"), ("tool_calls", "output_json")):
            for row in rows[table]:
                cell = row.get(column)
                if isinstance(cell, str) and NAMES_AN_IMAGE in cell:
                    foreign = set(_images(decode_blocks(cell))) - known
                    row[column] = renamed_blocks(cell, {one: str(uuid4()) for one in foreign}) if foreign else cell


def _parsed(value: JsonValue) -> Row:
    if not isinstance(value, dict) or any(isinstance(item, list | dict) for item in value.values()):
        raise ImportRefused(NO_EXPORT)
    row = cast("Row", value)
    return {column: storable(cell) if isinstance(cell, str) else cell for column, cell in row.items()}


def _has_id(row: Row) -> bool:
    found = row.get("id")
    return isinstance(found, str) and ID.fullmatch(found) is not None


def _check(table: str, members: Iterable[Row], known: set[str]) -> None:
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


def _conversation(row: Row, terms: ImportTerms, parent_id: str) -> Row:
    """Row of an idle conversation, with the settings of the importing user."""
    state = _state(row) if parent_id else Idle(0)
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


def _state(row: Row) -> State:
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
    rows["copied_rows"] = copied_rows.own_only(rows)
    _put_in_order(rows)
    settle_imported(rows)


def _put_in_order(rows: TableRows) -> None:
    rows["messages"].sort(key=_seq)
    if [row.get("seq") for row in rows["messages"]] != list(range(1, len(rows["messages"]) + 1)):
        raise ImportRefused(f"{_UNFIT} (its messages are not numbered from 1 on).")
    for row in rows["messages"]:
        row["text"] = plain_text(decode_blocks(str(row.get("content_json") or "[]")))
    for row in rows["tool_calls"]:
        row["id"] = f"{row['assistant_message_id']}/{row.get('ordinal')}"
    for row in rows["runs"]:
        row["status"] = "interrupted" if row.get("status") == "running" else row.get("status")
    for row in rows["traces"]:
        row["status"] = "cancelled" if row.get("status") == "running" else row.get("status")


def _seq(row: Row) -> int:
    seq = row.get("seq")
    return seq if isinstance(seq, int) else 0


def _told(cell: ColumnValue, called: Mapping[str, str]) -> ColumnValue:
    if not isinstance(cell, str) or not called:
        return cell
    return _AGENT_ID.sub(lambda match: called.get(match[0], match[0]), cell)


def _images(blocks: Iterable[Block]) -> Iterable[str]:
    for block in blocks:
        if isinstance(block, ImageBlock):
            yield block.attachment_id
        elif isinstance(block, ToolResultBlock):
            yield from _images(block.content)
