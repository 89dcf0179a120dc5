"""Recovery: brings interrupted conversations to rest (SPEC STM-10). A second recovery changes nothing."""

from __future__ import annotations

import sqlite3
from typing import assert_never
from uuid import uuid4

from msgspec import Struct

from engine.codec import CodecError, decode_state
from engine.machine import agent_texts, texts
from engine.machine.broken import blocks_of, has_content
from engine.machine.effects import FinishRun, RunStatus
from engine.machine.messages import Block, NewMessage, Origin, Role, TextBlock, ToolUseBlock
from engine.machine.states import (
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
from engine.ports import AppendMessage
from engine.ports.task_store import MessageTracking
from engine.records import Recovery
from engine.store import (
    agent_ends,
    conversations,
    messages,
    recovery_events,
    runs,
    spans,
    task_progress,
    tool_calls,
)
from engine.store.ownership import Instance

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
        tracking = messages.tracking_now(self.connection, self.conversation_id)
        addition = AppendMessage(message, run_id=self.run_id)
        messages.append(self.connection, self.conversation_id, addition, self.at, tracking)


def is_needed(connection: sqlite3.Connection, instance: Instance) -> bool:
    """True when a process died, or one closed with an unfinished conversation."""
    return bool(instance.dead(connection) or connection.execute(_UNOWNED_LEFTOVERS).fetchone())


def recover_all(connection: sqlite3.Connection, instance: Instance, at: float) -> list[Recovery]:
    """Recover all conversations without a living owner; returns those that needed changes."""
    abandoned = [row["id"] for row in connection.execute(_UNOWNED_LEFTOVERS)]
    dead = instance.dead(connection)
    for owner in dead:
        owned = connection.execute("SELECT id FROM conversations WHERE owner_instance = ? ORDER BY kind", (owner,))
        abandoned += [row["id"] for row in owned]
    recovered = [recover(connection, conversation_id, at) for conversation_id in abandoned]
    for owner in dead:
        instance.bury(connection, owner)
    return [each for each in recovered if each.changed or each.processes]


def take_over(connection: sqlite3.Connection, instance: Instance, conversation_id: str, at: float) -> Recovery:
    """Bring one conversation to rest and own it, after those of its sub-agents without a living owner."""
    for agent in connection.execute(_UNFINISHED_AGENTS, (conversation_id,)).fetchall():
        if instance.living_pid(connection, agent["owner_instance"]) is None:
            recover(connection, agent["id"], at)
    recovered = recover(connection, conversation_id, at)
    instance.claim(connection, conversation_id, at)
    return recovered


def recover(connection: sqlite3.Connection, conversation_id: str, at: float, *, quiet: bool = True) -> Recovery:
    """Bring one conversation to rest; the caller knows that no process works in it. `quiet`: no parent is woken."""
    row = connection.execute(
        "SELECT kind, state_json, gen, updated_at FROM conversations WHERE id = ?",
        (conversation_id,),
    ).fetchone()
    state = _state_left(row["state_json"], row["gen"])
    scene = _Scene(connection, conversation_id, at, runs.active(connection, conversation_id))
    processes = tool_calls.running_processes(connection, conversation_id)
    found = agent_ends.result_after_crash(connection, state)
    interrupted = tool_calls.interrupt_open(connection, conversation_id, at, found)
    recovery_events.add_results(connection, conversation_id, scene.run_id, interrupted, at)
    added = _keep_partial(scene, state) + answer_dangling(connection, conversation_id, scene.run_id, at)
    kept_error = _keep_error(scene, state)
    if scene.run_id and isinstance(state, AwaitingLlm) and isinstance(state.phase, Requesting):
        runs.record_cut_off(connection, conversation_id, scene.run_id, row["updated_at"])
    if scene.run_id:
        iterations = 0 if isinstance(state, _WITHOUT_RUN) else state.run.iteration
        ended = row["updated_at"]  # its last sign of life: the restart may come days later
        runs.finish(connection, FinishRun(scene.run_id, RunStatus.INTERRUPTED, iterations), ended)
        spans.add_interrupted(connection, scene.run_id, interrupted, ended)
        recovery_events.add_end(connection, conversation_id, scene.run_id, at)
    task_progress.settle(connection, conversation_id, MessageTracking.RUNNING, MessageTracking.PENDING, at)
    rest = _at_rest(state, is_agent=row["kind"] == "subagent")
    if rest != state:
        conversations.set_state(connection, conversation_id, rest, row["updated_at"])
        recovery_events.add_rest(connection, conversation_id, scene.run_id, state, rest, at)
        agent_ends.tell_parent(connection, conversation_id, rest, at, quiet=quiet)
    return Recovery(conversation_id, interrupted, bool(scene.run_id), kept_error, added + bool(kept_error), processes)


def answer_dangling(connection: sqlite3.Connection, conversation_id: str, run_id: str, at: float) -> int:
    """Answer the tool uses of a last message that has none yet; returns the number of messages added, 0 or 1."""
    newest = messages.newest_visible(connection, conversation_id)
    if newest is None or newest.role is not Role.ASSISTANT:
        return 0
    uses = [block for block in newest.blocks if isinstance(block, ToolUseBlock)]
    if not uses:
        return 0
    results = tool_calls.results_of(connection, conversation_id, uses)
    _Scene(connection, conversation_id, at, run_id).append(Role.USER, Origin.TOOL, results)
    return 1


def _state_left(state_json: str, gen: int) -> State:
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
    if not isinstance(state, Errored) or _is_told(scene, state):
        return ""
    scene.append(Role.SYSTEM, Origin.NOTICE, (TextBlock(state.message),))
    return state.message


def _is_told(scene: _Scene, state: Errored) -> bool:
    """True when the row below an incomplete text already gives the reason."""
    (newest,) = messages.read_range(scene.connection, scene.conversation_id, 1, None, limit=1) or (None,)
    said = messages.plain_text(newest.blocks) if newest is not None and newest.role is Role.SYSTEM else ""
    return said.startswith(texts.broke_off("")) and said.removeprefix(texts.broke_off("")).rstrip(".") in state.message


def _at_rest(state: State, *, is_agent: bool) -> State:
    match state:
        case Completed() | Failed():
            return state
        case Idle() if not is_agent:
            return state
        case AwaitingLlm() if is_agent:
            said = messages.plain_text(blocks_of(state))
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
