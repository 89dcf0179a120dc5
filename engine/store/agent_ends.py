"""Delivery of a sub-agent's end to its parent, also through a crash."""

from __future__ import annotations

import sqlite3
from typing import Final

from engine.machine import agent_texts
from engine.machine.messages import TextBlock, ToolResult, ToolStatus
from engine.machine.states import (
    STATE_NAMES,
    AgentOutcome,
    AgentStatus,
    AgentTask,
    AwaitingSubagents,
    Cancelling,
    Completed,
    Failed,
    State,
)
from engine.records import SpawnMode
from engine.store import agent_rows, inbox

ENDED: Final = frozenset({STATE_NAMES[Completed], STATE_NAMES[Failed]})
"""Final values of the column `conversations.state`."""


def tell_parent(connection: sqlite3.Connection, agent_id: str, state: State, at: float, *, quiet: bool) -> None:
    """Put the completion of a background sub-agent into its parent's inbox (SPEC UNI-23).

    A `quiet` one wakes no parent: its user stopped it, or a restart may begin nothing by itself (SPEC DEC-03). The same
    holds when its parent was stopped before this transaction.
    """
    if not isinstance(state, Completed | Failed):
        return
    found = agent_rows.row_of(connection, agent_id)
    if found is not None and found.facts.mode is SpawnMode.BACKGROUND:
        leave(connection, agent_id, at, quiet=quiet or agent_rows.wakes_suppressed(connection, agent_id))


def leave(connection: sqlite3.Connection, agent_id: str, at: float, *, quiet: bool) -> None:
    """Put the completion of one that has ended into its parent's inbox (SPEC T-CMP)."""
    found = agent_rows.row_of(connection, agent_id)
    if found is None or found.outcome is None:
        return
    text = agent_texts.completion(agent_id, found.outcome, found.turns, found.tool_iterations)
    inbox.deposit(connection, found.facts.parent_id, "completion", (TextBlock(text),), agent_id, at, quiet=quiet)


def result_after_crash(connection: sqlite3.Connection, state: State) -> ToolResult | None:
    """Result of a spawn call that a crash interrupted; None if none was open (SPEC STM-10)."""
    if not isinstance(state, AwaitingSubagents | Cancelling) or not state.agents:
        return None
    known = {outcome.agent_id: outcome for outcome in state.outcomes}
    outcomes = [known.get(agent.id) or _outcome_stored(connection, agent) for agent in state.agents]
    text, ends = agent_texts.aggregate(state.agents, outcomes), agent_texts.ends(state.agents, outcomes)
    return ToolResult(state.round.current.id, text, ToolStatus.INTERRUPTED, agents=ends)


def _outcome_stored(connection: sqlite3.Connection, agent: AgentTask) -> AgentOutcome:
    found = agent_rows.row_of(connection, agent.id)
    if found is not None and found.outcome is not None:
        return found.outcome
    words = agent_rows.last_words(connection, agent.id)
    return AgentOutcome(agent.id, AgentStatus.FAILURE, words, agent_texts.INTERRUPTED)
