"""What a list of conversations is told of one: when its state changes, and when its answer begins to arrive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.executor.requests import Activity
from engine.machine.states import AwaitingApproval, Errored, State
from engine.records import ConversationRecord
from engine.summaries import summary_of
from engine.updates import (
    Asked,
    ConversationChanged,
    LiveTextDropped,
    MessageSaved,
    StateChanged,
    TextArrived,
    ToolDrafted,
    Update,
)

Watcher = Callable[[Activity], None]


class Watched(Protocol):
    """A conversation, as far as a list knows it."""

    @property
    def record(self) -> ConversationRecord:
        """How it stands."""
        ...

    @property
    def state(self) -> State:
        """What it does."""
        ...


class ActivityTeller:
    """Follows one conversation. Of a streaming answer the first piece alone is told: twenty at once cost nothing."""

    def __init__(self, conversation: Watched, watchers: Sequence[Watcher]) -> None:
        self._conversation = conversation
        self._watchers = watchers
        self._writing = False

    def follow(self, update: Update) -> None:
        """Tell the watchers what matters to a list."""
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
            case ConversationChanged() | Asked():
                pass
            case _:
                return
        if self._watchers:
            self._tell()

    def _tell(self) -> None:
        state = self._conversation.state
        needs_you = isinstance(state, AwaitingApproval | Errored)
        activity = Activity(summary_of(self._conversation.record), state, needs_you, self._writing)
        for watcher in tuple(self._watchers):
            watcher(activity)
