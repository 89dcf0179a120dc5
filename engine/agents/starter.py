"""From a call to sub-agents that work: all of it happens, or those that were made end unbegun."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from engine.agents.factory import AgentFactory
from engine.agents.results import AgentResults
from engine.agents.scheduler import AgentScheduler, RunningAgent
from engine.agents.spawn_requests import TaskOrder
from engine.agents.views import AgentBoard, view_of
from engine.conversation import Conversation
from engine.ports import StorageError
from engine.ports.agents import AgentStore
from engine.records import AgentFacts, ConversationRecord, SpawnMode
from tools.contract import ToolInputError


class AgentStarter:
    """Makes sub-agents, opens their conversations and puts them on the shift."""

    def __init__(
        self,
        making: AgentFactory,
        store: AgentStore,
        adopt: Callable[[ConversationRecord], Awaitable[Conversation]],
        shift: AgentScheduler,
        endings: AgentResults,
        board: AgentBoard,
    ) -> None:
        self._making = making
        self._store = store
        self._adopt = adopt
        self._shift = shift
        self._endings = endings
        self._board = board

    async def recruit(
        self,
        parent: Conversation,
        call_id: str,
        tasks: Sequence[TaskOrder],
        mode: SpawnMode,
        *,
        sequential: bool = False,
    ) -> list[RunningAgent]:
        """Make the sub-agents of a call and start them; where the call is cut off meanwhile they end unbegun."""
        making = asyncio.ensure_future(self._make(parent, call_id, tasks, mode))
        try:
            hands = await asyncio.shield(making)
        except asyncio.CancelledError:
            self._endings.start(self._give_up(making))
            raise
        if sequential:
            for place, hand in enumerate(hands):
                hand.after = tuple(hands[:place])
        self._shift.start(hands)
        return hands

    async def _give_up(self, making: asyncio.Future[list[RunningAgent]]) -> None:
        with suppress(ToolInputError, StorageError):  # then there are none
            self._shift.dismiss(await making)

    async def _make(
        self, parent: Conversation, call_id: str, tasks: Sequence[TaskOrder], mode: SpawnMode
    ) -> list[RunningAgent]:
        records = await self._making.make(parent.record, call_id, tasks, mode)
        background = mode is SpawnMode.BACKGROUND
        hands: list[RunningAgent] = []
        try:
            for record in records:
                conversation = await self._adopt(record)
                row = await self._store.row(record.id)
                assert record.agent is not None, "what was made for a call is a sub-agent"
                hands.append(self.take_on(conversation, record.agent, parent, background=background))
                if row is not None:
                    self._board.put(parent.id, view_of(row))
        except BaseException:
            self._shift.dismiss(hands)
            raise
        return hands

    def take_on(
        self, conversation: Conversation, facts: AgentFacts, parent: Conversation, *, background: bool
    ) -> RunningAgent:
        """Put one on the shift: it is its parent's, and works once it is started."""
        conversation.agents.belong_to(parent.agents)
        hand = RunningAgent(conversation, parent, facts, background)
        self._shift.take(hand)
        return hand
