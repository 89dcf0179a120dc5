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
from engine.store import (
    agent_ends,
    agent_rows,
    compactions,
    conversations,
    inbox,
    messages,
    planning,
    queued,
    run_records,
    runs,
    spans,
    tool_calls,
    trace_queue,
)
from engine.store.event_batch import EventBatch
from engine.store.ownership import Instance

CANCELLED = "cancelled"
"""Kind of a sub-agent's end that its user caused: it wakes no conversation."""
LOST = "This conversation is no longer open in this Phoenix; open it again to continue."


def commit(connection: sqlite3.Connection, move: Move, instance: Instance) -> Committed:
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
            runs.place_in_turn(connection, move.conversation_id, write.run_id)
    conversations.set_state(connection, move.conversation_id, move.state, move.at)
    if before["state"] not in agent_ends.ENDED:  # a later notice is no second end
        stopped = isinstance(move.state, Failed) and move.state.kind == CANCELLED
        agent_ends.tell_parent(connection, move.conversation_id, move.state, move.at, quiet=stopped)
    return Committed(tuple(stored))


def _apply(connection: sqlite3.Connection, move: Move, write: Write, events: EventBatch) -> list[StoredMessage]:
    """Carry out one write; returns the messages it appended."""
    match write:
        case RecordEvent():
            events.add(write)
        case AppendMessage():
            return [messages.append(connection, move.conversation_id, write, move.at, move.tracking, events)]
        case DrainInboxRows():
            return inbox.drain(connection, move.conversation_id, write, move.at, move.tracking, events)
        case RecordCall(call):
            runs.record_call(connection, move.conversation_id, call)
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
            if not queued.take(connection, queued_id, text):
                return []
            addition = AppendMessage(message, run_id)
            return [messages.append(connection, move.conversation_id, addition, move.at, move.tracking)]
        case RemoveQueued(message_id):
            queued.remove(connection, message_id)
            return []
        case _:
            assert_never(write)


def _apply_to_window(
    connection: sqlite3.Connection, move: Move, write: SetContext | SetView | RecordCompaction
) -> None:
    match write:
        case SetContext():
            conversations.set_context(connection, move.conversation_id, write)
        case SetView(view):
            conversations.set_view(connection, move.conversation_id, view)
        case RecordCompaction():
            compactions.add(connection, move.conversation_id, write, move.at)
        case _:
            assert_never(write)


def _apply_to_agents(
    connection: sqlite3.Connection, move: Move, write: Deposit | MakeBackground | SuppressWakes
) -> None:
    match write:
        case Deposit(text, sender):
            inbox.deposit(connection, move.conversation_id, "user", (TextBlock(text),), sender, move.at)
        case MakeBackground():
            agent_rows.make_background(connection, move.conversation_id)
        case SuppressWakes():
            inbox.suppress_wakes(connection, move.conversation_id)
            agent_rows.suppress_wakes(connection, move.conversation_id)
        case _:
            assert_never(write)


def _apply_to_calls(
    connection: sqlite3.Connection,
    move: Move,
    write: SaveToolCalls | MarkToolCall | SaveToolResult | SaveTodos | SavePlan,
) -> None:
    match write:
        case SaveTodos(todos):
            planning.set_todos(connection, move.conversation_id, todos)
        case SavePlan():
            planning.set_plan(connection, move.conversation_id, write)
        case SaveToolCalls():
            tool_calls.add(connection, move.conversation_id, write)
        case MarkToolCall():
            tool_calls.mark(connection, move.conversation_id, write, move.at)
        case SaveToolResult():
            tool_calls.settle(connection, move.conversation_id, write, move.at)
        case _:
            assert_never(write)


def _apply_to_runs(
    connection: sqlite3.Connection,
    move: Move,
    write: StartRun | LimitRun | SaveRoute | FinishRun | RecordSpan,
) -> None:
    match write:
        case LimitRun():
            runs.limit(connection, write)
        case StartRun():
            runs.start(connection, move.conversation_id, write, move.at)
        case SaveRoute():
            run_records.set_route(connection, write)
        case FinishRun():
            runs.finish(connection, write, move.at)
        case RecordSpan():
            spans.add_tool(connection, write, move.at)
            trace_queue.tool_ended(connection, write.run_id, write.id)
        case _:
            assert_never(write)
