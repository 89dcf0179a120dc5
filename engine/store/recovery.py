"""Recovery: brings interrupted conversations to rest, with events (SPEC STM-10). A second one changes nothing."""

from __future__ import annotations

import sqlite3
from typing import Final, assert_never
from uuid import uuid4

import msgspec
from msgspec import Struct

from engine.codec import CodecError, decode_state
from engine.machine import agent_texts, texts
from engine.machine.broken import blocks_of, has_content
from engine.machine.effects import FinishRun, RunStatus
from engine.machine.messages import Block, NewMessage, Origin, Role, TextBlock, ToolUseBlock
from engine.machine.states import (
    STATE_NAMES,
    AwaitingApproval,
    AwaitingLlm,
    AwaitingSubagents,
    Cancelling,
    Compacting,
    Completed,
    Errored,
    Failed,
    Idle,
    Requesting,
    State,
    ToolExecuting,
)
from engine.ports import AppendMessage, RecordEvent
from engine.ports.task_store import MessageTracking
from engine.records import Recovery
from engine.records import events as payloads
from engine.records.events import EventKind
from engine.store.agents import make_result_after_crash, tell_parent
from engine.store.conversations import read_agent, set_state
from engine.store.events import add_event
from engine.store.messages import append_message, join_text, read_messages, read_newest_visible, read_tracking
from engine.store.ownership import Instance
from engine.store.runs import find_active_run, finish_run, record_cut_off_call
from engine.store.tasks import settle_tracking
from engine.store.tool_calls import interrupt_open_calls, list_running_processes, read_results
from engine.store.traces import add_interrupted_spans
from tools.contract import JsonObject
from tools.fresh_ids import fresh_id

_CALLS: Final = """SELECT t.tool_use_id, t.name, t.output_text, t.assistant_message_id FROM json_each(?) AS wanted
    JOIN tool_calls AS t ON t.conversation_id = ? AND t.tool_use_id = wanted.value ORDER BY wanted.rowid"""


def add_result_events(
    connection: sqlite3.Connection, conversation_id: str, run_id: str, call_ids: tuple[str, ...], at: float
) -> None:
    """Record the end of each interrupted call."""
    wanted = msgspec.json.encode(call_ids).decode()
    for row in connection.execute(_CALLS, (wanted, conversation_id)).fetchall() if call_ids else ():
        payload = payloads.tool_result(row["name"], row["tool_use_id"], row["output_text"], success=False)
        message_id = row["assistant_message_id"]
        _add_event(connection, conversation_id, run_id, EventKind.TASK_TOOL_RESULT, payload, at, message_id=message_id)


def add_rest_events(
    connection: sqlite3.Connection, conversation_id: str, run_id: str, before: State, after: State, at: float
) -> None:
    """Record the state that the conversation came to rest in, and the end of a sub-agent."""
    names = STATE_NAMES[type(before)], STATE_NAMES[type(after)]
    if names[0] != names[1]:
        _add_event(connection, conversation_id, run_id, EventKind.STATE_CHANGED, payloads.state_changed(*names), at)
    found = read_agent(connection, conversation_id)
    if found is None or not isinstance(after, Completed | Failed) or isinstance(before, Completed | Failed):
        return
    stop = payloads.agent_stop(conversation_id, found.facts, found.profile, run_id, after)
    parent = found.facts.parent_id
    _add_event(connection, conversation_id, run_id, EventKind.TASK_SUBAGENT_STOP, stop, at, parent_id=parent)


def _add_event(
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
    text = payloads.encode_payload(payload)
    event = RecordEvent(fresh_id(), kind, text, run_id, message_id, agent_id, conversation_id=parent_id)
    add_event(connection, conversation_id, event, at)


_UNOWNED_LEFTOVERS = """SELECT id FROM conversations WHERE owner_instance IS NULL
    AND state NOT IN ('completed', 'failed') AND (state <> 'idle' OR kind = 'subagent') ORDER BY kind"""
"""Unfinished conversations without an owner; sub-agents first, since their parent receives their outcome."""
_UNFINISHED_AGENTS = """SELECT id, owner_instance FROM conversations
    WHERE parent_id = ? AND kind = 'subagent' AND state NOT IN ('completed', 'failed')"""
_WITHOUT_RUN = (Idle, Compacting, Errored, Completed, Failed)


class _Scene(Struct, frozen=True):
    """One conversation as the crash left it."""

    connection: sqlite3.Connection
    conversation_id: str
    at: float
    run_id: str

    def append(self, role: Role, origin: Origin, blocks: tuple[Block, ...], cut: str = "") -> None:
        message = NewMessage(str(uuid4()), role, origin, blocks, cut=cut)
        tracking = read_tracking(self.connection, self.conversation_id)
        addition = AppendMessage(message, run_id=self.run_id)
        append_message(self.connection, self.conversation_id, addition, self.at, tracking)


def is_recovery_needed(connection: sqlite3.Connection, instance: Instance) -> bool:
    """True when a process died, or one closed with an unfinished conversation."""
    return bool(instance.dead(connection) or connection.execute(_UNOWNED_LEFTOVERS).fetchone())


def recover_all_conversations(connection: sqlite3.Connection, instance: Instance, at: float) -> list[Recovery]:
    """Recover all conversations without a living owner; returns those that needed changes."""
    abandoned = [row["id"] for row in connection.execute(_UNOWNED_LEFTOVERS)]
    dead = instance.dead(connection)
    for owner in dead:
        owned = connection.execute("SELECT id FROM conversations WHERE owner_instance = ? ORDER BY kind", (owner,))
        abandoned += [row["id"] for row in owned]
    recovered = [recover_conversation(connection, conversation_id, at) for conversation_id in abandoned]
    for owner in dead:
        instance.bury(connection, owner)
    return [each for each in recovered if each.changed or each.processes]


def take_over_conversation(
    connection: sqlite3.Connection, instance: Instance, conversation_id: str, at: float
) -> Recovery:
    """Bring one conversation to rest and own it, after those of its sub-agents without a living owner."""
    for agent in connection.execute(_UNFINISHED_AGENTS, (conversation_id,)).fetchall():
        if instance.living_pid(connection, agent["owner_instance"]) is None:
            recover_conversation(connection, agent["id"], at)
    recovered = recover_conversation(connection, conversation_id, at)
    instance.claim(connection, conversation_id, at)
    return recovered


def recover_conversation(
    connection: sqlite3.Connection, conversation_id: str, at: float, *, quiet: bool = True
) -> Recovery:
    """Bring one conversation to rest; the caller knows that no process works in it. `quiet`: no parent is woken."""
    row = connection.execute(
        "SELECT kind, state_json, gen, updated_at FROM conversations WHERE id = ?",
        (conversation_id,),
    ).fetchone()
    state = _decode_state_left(row["state_json"], row["gen"])
    scene = _Scene(connection, conversation_id, at, find_active_run(connection, conversation_id))
    processes = list_running_processes(connection, conversation_id)
    found = make_result_after_crash(connection, state)
    interrupted = interrupt_open_calls(connection, conversation_id, at, found)
    add_result_events(connection, conversation_id, scene.run_id, interrupted, at)
    added = _keep_partial(scene, state) + answer_dangling_calls(connection, conversation_id, scene.run_id, at)
    kept_error = _keep_error(scene, state)
    if scene.run_id and isinstance(state, AwaitingLlm) and isinstance(state.phase, Requesting):
        record_cut_off_call(connection, conversation_id, scene.run_id, row["updated_at"])
    if scene.run_id:
        iterations = 0 if isinstance(state, _WITHOUT_RUN) else state.run.iteration
        ended = row["updated_at"]  # its last sign of life: the restart may come days later
        finish_run(connection, FinishRun(scene.run_id, RunStatus.INTERRUPTED, iterations), ended)
        add_interrupted_spans(connection, scene.run_id, interrupted, ended)
        status = RunStatus.INTERRUPTED.value
        payload = payloads.build_failed(texts.CUT_OFF, status, status, recoverable=True)
        _add_event(connection, conversation_id, scene.run_id, EventKind.TASK_FAILED, payload, at)
    settle_tracking(connection, conversation_id, MessageTracking.RUNNING, MessageTracking.PENDING, at)
    rest = _find_rest(state, is_agent=row["kind"] == "subagent")
    if rest != state:
        set_state(connection, conversation_id, rest, row["updated_at"])
        add_rest_events(connection, conversation_id, scene.run_id, state, rest, at)
        tell_parent(connection, conversation_id, rest, at, quiet=quiet)
    return Recovery(conversation_id, interrupted, bool(scene.run_id), kept_error, added + bool(kept_error), processes)


def answer_dangling_calls(connection: sqlite3.Connection, conversation_id: str, run_id: str, at: float) -> int:
    """Answer the tool uses of a last message that has none yet; returns the number of messages added, 0 or 1."""
    newest = read_newest_visible(connection, conversation_id)
    if newest is None or newest.role is not Role.ASSISTANT:
        return 0
    uses = [block for block in newest.blocks if isinstance(block, ToolUseBlock)]
    if not uses:
        return 0
    results = read_results(connection, conversation_id, uses)
    _Scene(connection, conversation_id, at, run_id).append(Role.USER, Origin.TOOL, results)
    return 1


def _decode_state_left(state_json: str, gen: int) -> State:
    """The state as it was written; an unreadable one counts as an error, so that Phoenix can start."""
    try:
        return decode_state(state_json)
    except CodecError as error:
        return Errored(gen, "storage", f"The state of this conversation could not be read: {error}", False, "")


def _keep_partial(scene: _Scene, state: State) -> int:
    """Store the existing part of a reply: parts that waited for their continuation, text that waited for a retry."""
    if not isinstance(state, AwaitingLlm) or not has_content(blocks := blocks_of(state)):
        return 0
    if state.broken is None:
        scene.append(Role.ASSISTANT, Origin.LLM, blocks, texts.ENDED_MIDWAY)
        return 1
    scene.append(Role.ASSISTANT, Origin.LLM, blocks, state.broken.cause)
    scene.append(Role.SYSTEM, Origin.NOTICE, (TextBlock(texts.broke_off(state.broken.cause)),))
    return 2


def _keep_error(scene: _Scene, state: State) -> str:
    if not isinstance(state, Errored) or _is_error_shown(scene, state):
        return ""
    scene.append(Role.SYSTEM, Origin.NOTICE, (TextBlock(state.message),))
    return state.message


def _is_error_shown(scene: _Scene, state: Errored) -> bool:
    """True when the row below an incomplete text already gives the reason."""
    (newest,) = read_messages(scene.connection, scene.conversation_id, 1, None, limit=1) or (None,)
    said = join_text(newest.blocks) if newest is not None and newest.role is Role.SYSTEM else ""
    return said.startswith(texts.broke_off("")) and said.removeprefix(texts.broke_off("")).rstrip(".") in state.message


def _find_rest(state: State, *, is_agent: bool) -> State:
    match state:
        case Completed() | Failed():
            return state
        case Idle() if not is_agent:
            return state
        case AwaitingLlm() if is_agent:
            said = join_text(blocks_of(state))
            return Failed(state.gen + 1, "interrupted", agent_texts.INTERRUPTED, said)
        case (
            Idle()
            | AwaitingLlm()
            | ToolExecuting()
            | AwaitingApproval()
            | AwaitingSubagents()
            | Cancelling()
            | Compacting()
            | Errored()
        ):
            return Failed(state.gen + 1, "interrupted", agent_texts.INTERRUPTED) if is_agent else Idle(state.gen + 1)
        case _:
            assert_never(state)
