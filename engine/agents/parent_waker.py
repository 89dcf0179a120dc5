"""Wakes a parent for new results as soon as nothing else runs in it (SPEC UNI-24)."""

from __future__ import annotations

from engine.agents.results import AgentResults
from engine.agents.views import AgentBoard
from engine.conversation import Conversation
from engine.machine.states import Compacting, Idle
from engine.updates import RunEnded, StateChanged, Update

SUCCESS = "success"


class ParentWaker:
    """Follows parents to where they come to rest."""

    def __init__(self, results: AgentResults, board: AgentBoard) -> None:
        self._results = results
        self._board = board
        self._compacting: set[str] = set()

    def follow(self, parent: Conversation, update: Update) -> None:
        """Wake the parent after a successful run, or a requested summary, during which results waited."""
        match update:
            case RunEnded(status=status):
                if status == SUCCESS:
                    self._wake(parent)
                self._results.start(self._results.recount(parent, self._board))
            case StateChanged(state=Compacting()):
                self._compacting.add(parent.id)
            case StateChanged(state=Idle()) if parent.id in self._compacting:
                self._compacting.discard(parent.id)
                self._wake(parent)
            case _:
                pass  # other updates wake no parent

    def stopped(self, parent_id: str) -> None:
        """Keep new results waiting, since the user stopped the parent."""
        self._compacting.discard(parent_id)

    def _wake(self, parent: Conversation) -> None:
        if any(view.background for view in self._board.views(parent.id)):
            self._results.wake(parent)
