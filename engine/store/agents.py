"""Sub-agents: how they are created and read, and how their ends reach their parents, also through a crash."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
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
from engine.records import AgentRow, NewConversation, SpawnMode, StoredConversation
from engine.store.connection import reads, writes
from engine.store.conversations import (
    create_conversation,
    has_suppressed_wakes,
    read_agent,
    read_agents,
    read_last_words,
    require_conversation,
)
from engine.store.inbox import count_waiting, deposit_entry, has_waking_entry
from engine.store.ownership import OwnedTables

ENDED: Final = frozenset({STATE_NAMES[Completed], STATE_NAMES[Failed]})
"""Final values of the column `conversations.state`."""


def tell_parent(connection: sqlite3.Connection, agent_id: str, state: State, at: float, *, quiet: bool) -> None:
    """Put the completion of a background sub-agent into its parent's inbox (SPEC UNI-23).

    A `quiet` one wakes no parent: its user stopped it, or a restart may begin nothing by itself (SPEC DEC-03). The same
    holds when its parent was stopped before this transaction.
    """
    if not isinstance(state, Completed | Failed):
        return
    found = read_agent(connection, agent_id)
    if found is not None and found.facts.mode is SpawnMode.BACKGROUND:
        leave_completion(connection, agent_id, at, quiet=quiet or has_suppressed_wakes(connection, agent_id))


def leave_completion(connection: sqlite3.Connection, agent_id: str, at: float, *, quiet: bool) -> None:
    """Put the completion of one that has ended into its parent's inbox (SPEC T-CMP)."""
    found = read_agent(connection, agent_id)
    if found is None or found.outcome is None:
        return
    text = agent_texts.completion(agent_id, found.outcome, found.turns, found.tool_iterations)
    deposit_entry(connection, found.facts.parent_id, "completion", (TextBlock(text),), agent_id, at, quiet=quiet)


def make_result_after_crash(connection: sqlite3.Connection, state: State) -> ToolResult | None:
    """Result of a spawn call that a crash interrupted; None if none was open (SPEC STM-10)."""
    if not isinstance(state, AwaitingSubagents | Cancelling) or not state.agents:
        return None
    known = {outcome.agent_id: outcome for outcome in state.outcomes}
    outcomes = [known.get(agent.id) or _find_outcome(connection, agent) for agent in state.agents]
    text, ends = agent_texts.aggregate(state.agents, outcomes), agent_texts.ends(state.agents, outcomes)
    return ToolResult(state.round.current.id, text, ToolStatus.INTERRUPTED, agents=ends)


def _find_outcome(connection: sqlite3.Connection, agent: AgentTask) -> AgentOutcome:
    found = read_agent(connection, agent.id)
    if found is not None and found.outcome is not None:
        return found.outcome
    words = read_last_words(connection, agent.id)
    return AgentOutcome(agent.id, AgentStatus.FAILURE, words, agent_texts.INTERRUPTED)


class AgentStore(OwnedTables):
    """Sub-agents and inboxes; shares the connections of its store."""

    @writes
    def create_all(
        self, connection: sqlite3.Connection, new: Sequence[NewConversation], at: float
    ) -> Sequence[StoredConversation]:
        """Create the sub-agents of one call in one transaction, owned here; their prompts wait in their inboxes."""
        for one in new:
            create_conversation(connection, one, at)
            if one.agent is not None:
                deposit_entry(connection, one.id, "user", (TextBlock(one.prompt),), one.agent.parent_id, at)
            self._instance.claim(connection, one.id, at)
        return [require_conversation(connection, one.id, self._instance) for one in new]

    @reads
    def rows(self, connection: sqlite3.Connection, parent_id: str) -> Sequence[AgentRow]:
        """Every sub-agent of a conversation, oldest first."""
        return read_agents(connection, parent_id)

    @reads
    def row(self, connection: sqlite3.Connection, agent_id: str) -> AgentRow | None:
        """One sub-agent, or None."""
        return read_agent(connection, agent_id)

    @writes
    def tell(self, connection: sqlite3.Connection, agent_id: str, text: str, sender: str, at: float) -> None:
        """Put a message to a sub-agent at work into its inbox: it is read before its next request.

        `sender` is USER or the id of its parent.
        """
        deposit_entry(connection, agent_id, "user", (TextBlock(text),), sender, at)

    @writes
    def leave(self, connection: sqlite3.Connection, agent_id: str, at: float) -> None:
        """Put the result of this sub-agent into its parent's inbox, which waits for it no more; it begins no turn."""
        leave_completion(connection, agent_id, at, quiet=True)

    @reads
    def waiting(self, connection: sqlite3.Connection, conversation_id: str) -> int:
        """Number of waiting entries in an inbox."""
        return count_waiting(connection, conversation_id)

    @reads
    def wakes(self, connection: sqlite3.Connection, conversation_id: str) -> bool:
        """True when an entry waits that begins a turn of an idle conversation.

        The end of a sub-agent that was stopped or that a restart cut off waits for the user instead.
        """
        return has_waking_entry(connection, conversation_id)
