"""Start of sub-agents for a call: all of them start, or those created end unbegun."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from engine.agents.factory import AgentFactory
from engine.agents.results import AgentResults
from engine.agents.scheduler import AgentScheduler, RunningAgent
from engine.agents.spawn_requests import TaskRequest
from engine.agents.views import AgentBoard, view_of
from engine.conversation import Conversation
from engine.ports import StorageError
from engine.ports.agents import AgentStore
from engine.records import AgentFacts, SpawnMode, StoredConversation
from tools.contract import ToolInputError


class AgentStarter:
    """Creates sub-agents, opens their conversations and hands them to the scheduler."""

    def __init__(
        self,
        factory: AgentFactory,
        store: AgentStore,
        adopt: Callable[[StoredConversation], Awaitable[Conversation]],
        scheduler: AgentScheduler,
        results: AgentResults,
        board: AgentBoard,
    ) -> None:
        self._making = factory
        self._store = store
        self._adopt = adopt
        self._scheduler = scheduler
        self._results = results
        self._board = board

    async def start_all(
        self,
        parent: Conversation,
        call_id: str,
        tasks: Sequence[TaskRequest],
        mode: SpawnMode,
        *,
        sequential: bool = False,
    ) -> list[RunningAgent]:
        """Make the sub-agents of a call and start them; where the call is cut off meanwhile they end unbegun."""
        factory = asyncio.ensure_future(self._make(parent, call_id, tasks, mode))
        try:
            all_running = await asyncio.shield(factory)
        except asyncio.CancelledError:
            self._results.start(self._give_up(factory))
            raise
        if sequential:
            for place, running in enumerate(all_running):
                running.after = tuple(all_running[:place])
        self._scheduler.start(all_running)
        return all_running

    async def _give_up(self, factory: asyncio.Future[list[RunningAgent]]) -> None:
        with suppress(ToolInputError, StorageError):  # then there are none
            self._scheduler.dismiss(await factory)

    async def _make(
        self, parent: Conversation, call_id: str, tasks: Sequence[TaskRequest], mode: SpawnMode
    ) -> list[RunningAgent]:
        records = await self._making.make(parent.record, call_id, tasks, mode)
        background = mode is SpawnMode.BACKGROUND
        all_running: list[RunningAgent] = []
        try:
            for record in records:
                conversation = await self._adopt(record)
                row = await self._store.row(record.id)
                assert record.agent is not None, "what was made for a call is a sub-agent"
                all_running.append(self.add(conversation, record.agent, parent, background=background))
                if row is not None:
                    self._board.put(parent.id, view_of(row))
        except BaseException:
            self._scheduler.dismiss(all_running)
            raise
        return all_running

    def add(
        self, conversation: Conversation, facts: AgentFacts, parent: Conversation, *, background: bool
    ) -> RunningAgent:
        """Register one with its parent; it works once the scheduler starts it."""
        conversation.agents.belong_to(parent.agents)
        running = RunningAgent(conversation, parent, facts, background)
        self._scheduler.take(running)
        return running
