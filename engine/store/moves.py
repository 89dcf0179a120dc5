"""Writes one move of the machine: all its writes and the new state, in the caller's transaction."""

from __future__ import annotations

import sqlite3
from typing import assert_never

from engine.machine.effects import (
    FinishRun,
    MarkToolCall,
    SavePlan,
    SaveRoute,
    SaveTodos,
    SaveToolCalls,
    SaveToolResult,
    StartRun,
)
from engine.machine.messages import TextBlock
from engine.machine.states import Failed
from engine.ports import (
    AppendMessage,
    Committed,
    DeliverQueued,
    Deposit,
    DrainInboxRows,
    LimitRun,
    MakeBackground,
    Move,
    RecordCall,
    RecordCompaction,
    RecordEvent,
    RecordSpan,
    RemoveQueued,
    SetContext,
    SetView,
    StorageError,
    SuppressWakes,
    Write,
)
from engine.records import StoredMessage
from engine.store.agents import ENDED, tell_parent
from engine.store.conversations import (
    add_compaction,
    make_background_agent,
    set_context,
    set_state,
    set_view,
    suppress_agent_wakes,
)
from engine.store.events import EventBatch
from engine.store.inbox import deposit_entry, drain_inbox, remove_queued, suppress_entry_wakes, take_queued
from engine.store.messages import append_message
from engine.store.ownership import Instance
from engine.store.runs import finish_run, limit_run, place_run_in_turn, record_call, set_run_route, start_run
from engine.store.tool_calls import add_tool_calls, mark_tool_call, set_plan, set_todos, settle_tool_call
from engine.store.trace_export import queue_late_tool
from engine.store.traces import add_tool_span

CANCELLED = "cancelled"
"""Kind of a sub-agent's end that its user caused: it wakes no conversation."""
LOST = "This conversation is no longer open in this Phoenix; open it again to continue."


def commit_move(connection: sqlite3.Connection, move: Move, instance: Instance) -> Committed:
    """Apply the writes in order, then the state.

    Raises:
        StorageError: this process does not own the conversation, or it is gone.
    """
    before = connection.execute(
        "SELECT owner_instance, state, kind FROM conversations WHERE id = ?", (move.conversation_id,)
    ).fetchone()
    if before is None or before["owner_instance"] != instance.id:
        raise StorageError(LOST)
    agent_id = move.conversation_id if before["kind"] == "subagent" else ""
    events = EventBatch(connection, move.conversation_id, agent_id, move.at)
    stored = [message for write in move.writes for message in _apply(connection, move, write, events)]
    events.store()
    for write in move.writes:
        if isinstance(write, StartRun):
            place_run_in_turn(connection, move.conversation_id, write.run_id)
    set_state(connection, move.conversation_id, move.state, move.at)
    if before["state"] not in ENDED:  # a later notice is no second end
        stopped = isinstance(move.state, Failed) and move.state.kind == CANCELLED
        tell_parent(connection, move.conversation_id, move.state, move.at, quiet=stopped)
    return Committed(tuple(stored))


def _apply(connection: sqlite3.Connection, move: Move, write: Write, events: EventBatch) -> list[StoredMessage]:
    """Carry out one write; returns the messages it appended."""
    match write:
        case RecordEvent():
            events.add(write)
        case AppendMessage():
            return [append_message(connection, move.conversation_id, write, move.at, move.tracking, events)]
        case DrainInboxRows():
            return drain_inbox(connection, move.conversation_id, write, move.at, move.tracking, events)
        case RecordCall(call):
            record_call(connection, move.conversation_id, call)
        case DeliverQueued() | RemoveQueued():
            return _apply_to_queue(connection, move, write)
        case Deposit() | MakeBackground() | SuppressWakes():
            _apply_to_agents(connection, move, write)
        case SetContext() | SetView() | RecordCompaction():
            _apply_to_window(connection, move, write)
        case SaveToolCalls() | MarkToolCall() | SaveToolResult() | SaveTodos() | SavePlan():
            _apply_to_calls(connection, move, write)
        case StartRun() | LimitRun() | SaveRoute() | FinishRun() | RecordSpan():
            _apply_to_runs(connection, move, write)
        case _:
            assert_never(write)
    return []


def _apply_to_queue(
    connection: sqlite3.Connection, move: Move, write: DeliverQueued | RemoveQueued
) -> list[StoredMessage]:
    match write:
        case DeliverQueued(queued_id, text, message, run_id):
            if not take_queued(connection, queued_id, text):
                return []
            addition = AppendMessage(message, run_id)
            return [append_message(connection, move.conversation_id, addition, move.at, move.tracking)]
        case RemoveQueued(message_id):
            remove_queued(connection, message_id)
            return []
        case _:
            assert_never(write)


def _apply_to_window(
    connection: sqlite3.Connection, move: Move, write: SetContext | SetView | RecordCompaction
) -> None:
    match write:
        case SetContext():
            set_context(connection, move.conversation_id, write)
        case SetView(view):
            set_view(connection, move.conversation_id, view)
        case RecordCompaction():
            add_compaction(connection, move.conversation_id, write, move.at)
        case _:
            assert_never(write)


def _apply_to_agents(
    connection: sqlite3.Connection, move: Move, write: Deposit | MakeBackground | SuppressWakes
) -> None:
    match write:
        case Deposit(text, sender):
            deposit_entry(connection, move.conversation_id, "user", (TextBlock(text),), sender, move.at)
        case MakeBackground():
            make_background_agent(connection, move.conversation_id)
        case SuppressWakes():
            suppress_entry_wakes(connection, move.conversation_id)
            suppress_agent_wakes(connection, move.conversation_id)
        case _:
            assert_never(write)


def _apply_to_calls(
    connection: sqlite3.Connection,
    move: Move,
    write: SaveToolCalls | MarkToolCall | SaveToolResult | SaveTodos | SavePlan,
) -> None:
    match write:
        case SaveTodos(todos):
            set_todos(connection, move.conversation_id, todos)
        case SavePlan():
            set_plan(connection, move.conversation_id, write)
        case SaveToolCalls():
            add_tool_calls(connection, move.conversation_id, write)
        case MarkToolCall():
            mark_tool_call(connection, move.conversation_id, write, move.at)
        case SaveToolResult():
            settle_tool_call(connection, move.conversation_id, write, move.at)
        case _:
            assert_never(write)


def _apply_to_runs(
    connection: sqlite3.Connection,
    move: Move,
    write: StartRun | LimitRun | SaveRoute | FinishRun | RecordSpan,
) -> None:
    match write:
        case LimitRun():
            limit_run(connection, write)
        case StartRun():
            start_run(connection, move.conversation_id, write, move.at)
        case SaveRoute():
            set_run_route(connection, write)
        case FinishRun():
            finish_run(connection, write, move.at)
        case RecordSpan():
            add_tool_span(connection, write, move.at)
            queue_late_tool(connection, write.run_id, write.id)
        case _:
            assert_never(write)
