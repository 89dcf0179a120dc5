"""Rows of open conversations in a list, and reports of their changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.executor.requests import Activity
from engine.machine.states import STATE_NAMES, AwaitingApproval, Errored, State
from engine.records import ConversationRecord, ConversationSummary
from engine.updates import (
    AgentsChanged,
    AgentView,
    ApprovalAsked,
    ConversationChanged,
    LiveTextDropped,
    MessageSaved,
    StateChanged,
    TextArrived,
    ToolDrafted,
    Update,
)


def summary_of(record: ConversationRecord, state: State) -> ConversationSummary:
    """The row of an open conversation; it is read while it is shown, so never unread here."""
    return ConversationSummary(
        id=record.id,
        title=record.title,
        cwd=record.cwd,
        model=record.model,
        state_name=STATE_NAMES[type(state)],
        context_tokens=record.context_tokens,
        context_window=record.context_window,
        totals=record.spent,
        archived=record.archived,
        unread=False,
        updated_at=record.updated_at,
        message_count=record.message_count,
        owner_pid=record.owner_pid,
        pinned_at=record.pinned_at,
        last_status=record.last_status,
        has_draft=bool(record.draft),
        progress=record.todos.progress if record.todos.is_open else "",
        put_away_at=record.updated_at if record.archived or record.deleted else 0.0,
    )


Watcher = Callable[[Activity], None]


class WatchedConversation(Protocol):
    """A conversation, as far as a list knows it."""

    @property
    def record(self) -> ConversationRecord:
        """Stored facts of the conversation."""
        ...

    @property
    def state(self) -> State:
        """State of the machine."""
        ...


class ActivityReporter:
    """Follows one conversation. Reports only the first piece of a streaming answer, so that twenty at once cost
    nothing.
    """

    def __init__(self, conversation: WatchedConversation, watchers: Sequence[Watcher]) -> None:
        self._conversation = conversation
        self._watchers = watchers
        self._writing = False
        self._agents = (0, 0)
        """Sub-agents at work, and those that ask."""
        self._asked_by_server = False

    def follow(self, update: Update) -> None:
        """Send the watchers the changes that a list shows."""
        match update:
            case TextArrived() | ToolDrafted():
                if self._writing:
                    return
                self._writing = True
            case StateChanged() | MessageSaved():
                self._writing = False
            case LiveTextDropped():
                self._writing = False
                return  # a change of state follows
            case ApprovalAsked(question):
                self._asked_by_server = question is not None and bool(question.server)
            case ConversationChanged():
                pass
            case AgentsChanged(agents=views):
                before, self._agents = self._agents, count_agents(views)
                if before == self._agents:
                    return
            case _:
                return
        if self._watchers:
            self._tell()

    def _tell(self) -> None:
        state = self._conversation.state
        needs_you = isinstance(state, AwaitingApproval | Errored) or self._agents[1] > 0 or self._asked_by_server
        activity = Activity(
            summary_of(self._conversation.record, state), state, needs_you, self._writing, *self._agents
        )
        for watcher in tuple(self._watchers):
            watcher(activity)


def count_agents(views: Sequence[AgentView]) -> tuple[int, int]:
    """Number of sub-agents that work or queue, and number of them whose questions are open."""
    working = [view for view in views if view.outcome is None]
    return len(working), sum(isinstance(view.state, AwaitingApproval) and view.asked > 0.0 for view in working)
