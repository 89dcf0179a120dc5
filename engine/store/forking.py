"""Copies a conversation, whole or up to a message, into one that stands on its own."""

from __future__ import annotations

import sqlite3

from engine.codec import decode_omitted, encode_omitted, encode_state, encode_totals
from engine.machine.states import STATE_NAMES, Idle
from engine.records import Totals
from engine.store.copying import Row, Rows, insert_rows, read_rows, renamed
from engine.store.recovery import answer_dangling
from engine.store.tool_calls import interrupt_open

_OWN_HISTORY = ("queued_messages", "inbox", "events", "traces", "spans", "tracked_tasks")
"""Tables that tell what happened to the source, not what was said in it."""


def fork(connection: sqlite3.Connection, source_id: str, new_id: str, at: float, up_to_seq: int | None) -> None:
    """Insert the copy; calls without a result get the one of an interruption, so it can go on at once."""
    rows = _cut(read_rows(connection, source_id), up_to_seq)
    rows["conversations"] = [_fresh_start(rows["conversations"][0], at, up_to_seq)]
    insert_rows(connection, renamed(rows, new_id))
    interrupt_open(connection, new_id, at)
    answer_dangling(connection, new_id, "", at)


def _cut(rows: Rows, up_to_seq: int | None) -> Rows:
    """What belongs to the messages up to `up_to_seq`."""
    for table in _OWN_HISTORY:
        rows[table] = []
    kept = [row for row in rows["messages"] if up_to_seq is None or _number(row["seq"]) <= up_to_seq]
    message_ids = {row["id"] for row in kept}
    turn_ids = {row["turn_id"] for row in kept}
    run_ids = {row["run_id"] for row in kept}
    rows["messages"] = [row | {"tracked_task_id": None, "task_process_status": None} for row in kept]
    rows["turns"] = [row for row in rows["turns"] if row["id"] in turn_ids]
    rows["tool_calls"] = [row for row in rows["tool_calls"] if row["assistant_message_id"] in message_ids]
    rows["runs"] = [_ended(row, turn_ids) for row in rows["runs"] if row["id"] in run_ids]
    return rows


def _ended(run: Row, turn_ids: set[str | int | float | None]) -> Row:
    status = "interrupted" if run["status"] == "running" else run["status"]
    return run | {"status": status, "turn_id": run["turn_id"] if run["turn_id"] in turn_ids else None}


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
