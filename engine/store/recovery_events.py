"""Events of a recovery: the ends of everything that a crash cut off, in the transaction that repairs it."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from engine.machine import texts
from engine.machine.effects import RunStatus
from engine.machine.states import STATE_NAMES, Completed, Failed, State
from engine.ports import RecordEvent
from engine.records import event_payloads as payloads
from engine.records.events import EventKind
from engine.store import agent_rows, event_rows
from tools.contract import JsonObject
from tools.fresh_ids import fresh_id

_CALLS: Final = """SELECT t.tool_use_id, t.name, t.output_text, t.assistant_message_id FROM json_each(?) AS wanted
    JOIN tool_calls AS t ON t.conversation_id = ? AND t.tool_use_id = wanted.value ORDER BY wanted.rowid"""


def add_results(
    connection: sqlite3.Connection, conversation_id: str, run_id: str, call_ids: tuple[str, ...], at: float
) -> None:
    """Record the end of each interrupted call."""
    wanted = msgspec.json.encode(call_ids).decode()
    for row in connection.execute(_CALLS, (wanted, conversation_id)).fetchall() if call_ids else ():
        payload = payloads.tool_result(row["name"], row["tool_use_id"], row["output_text"], success=False)
        message_id = row["assistant_message_id"]
        _add(connection, conversation_id, run_id, EventKind.TASK_TOOL_RESULT, payload, at, message_id=message_id)


def add_end(connection: sqlite3.Connection, conversation_id: str, run_id: str, at: float) -> None:
    """Record the end of an interrupted run, behind that of its row."""
    status = RunStatus.INTERRUPTED.value
    payload = payloads.failed(texts.CUT_OFF, status, status, recoverable=True)
    _add(connection, conversation_id, run_id, EventKind.TASK_FAILED, payload, at)


def add_rest(
    connection: sqlite3.Connection, conversation_id: str, run_id: str, before: State, after: State, at: float
) -> None:
    """Record the state that the conversation came to rest in, and the end of a sub-agent."""
    names = STATE_NAMES[type(before)], STATE_NAMES[type(after)]
    if names[0] != names[1]:
        _add(connection, conversation_id, run_id, EventKind.STATE_CHANGED, payloads.state_changed(*names), at)
    found = agent_rows.row_of(connection, conversation_id)
    if found is None or not isinstance(after, Completed | Failed) or isinstance(before, Completed | Failed):
        return
    stop = payloads.agent_stop(conversation_id, found.facts, found.profile, run_id, after)
    parent = found.facts.parent_id
    _add(connection, conversation_id, run_id, EventKind.TASK_SUBAGENT_STOP, stop, at, parent_id=parent)


def _add(
    connection: sqlite3.Connection,
    conversation_id: str,
    run_id: str,
    kind: EventKind,
    payload: JsonObject,
    at: float,
    parent_id: str = "",
    message_id: str = "",
) -> None:
    is_agent = connection.execute("SELECT kind = 'subagent' FROM conversations WHERE id = ?", (conversation_id,))
    agent_id = conversation_id if is_agent.fetchone()[0] else ""
    text = payloads.encoded(payload)
    event = RecordEvent(fresh_id(), kind, text, run_id, message_id, agent_id, conversation_id=parent_id)
    event_rows.add(connection, conversation_id, event, at)
