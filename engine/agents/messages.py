"""Messages to sub-agents: stored when they are taken, read once, also by one that has ended (SPEC UNI-25)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from engine.agents.scheduler import AgentScheduler, RunningAgent
from engine.agents.starter import AgentStarter
from engine.agents.views import AgentBoard
from engine.conversation import Conversation
from engine.executor.launching import log_read_on
from engine.executor.requests import EngineError, Refused
from engine.executor.session import Ports
from engine.ports.agents import USER, AgentStore
from engine.records import AgentFacts


class AgentMessages:
    """Stores messages where sub-agents read them, and starts those again that have ended."""

    def __init__(
        self,
        ports: Ports,
        store: AgentStore,
        scheduler: AgentScheduler,
        starter: AgentStarter,
        board: AgentBoard,
        opened: Mapping[str, Conversation],
        reopen: Callable[[str], Awaitable[Conversation]],
    ) -> None:
        self._clock = ports.clock
        self._store = store
        self._scheduler = scheduler
        self._starter = starter
        self._board = board
        self._opened = opened
        self._reopen = reopen

    async def tell(self, agent_id: str, text: str, sender: str) -> None:
        """Send a message: a working one reads it before its next model call; a finished one starts a new run with it.

        Raises:
            EngineError: there is no such sub-agent, another process has it or its parent, or it cannot be stored.
            StorageError: it cannot be stored.
        """
        running = self._scheduler.get(agent_id)
        if running is None:
            await self._recall(agent_id, text, sender)
        elif running.is_over():
            await running.settled.wait()
            await self.tell(agent_id, text, sender)
        else:
            await self._store.tell(agent_id, text, sender, self._clock.now())
            log_read_on(running.conversation.record)
            if running.is_over():  # another reader may have taken it meanwhile
                await self.hear_late(running)

    async def hear_late(self, running: RunningAgent) -> None:
        """Resume it for messages that arrived while it submitted its result, if its parent is open."""
        await running.settled.wait()
        agent_id, parent = running.conversation.id, running.parent
        if running.stopped or not running.begun or not await self._store.waiting(agent_id):
            return
        conversation = await self._reopen(agent_id)
        # A closing parent waits for this: it is not opened again.
        if self._opened.get(parent.id) is parent and self._scheduler.get(agent_id) is None:
            await self._go_on(conversation, running.facts, parent, "", USER)

    async def _recall(self, agent_id: str, text: str, sender: str) -> None:
        row = await self._store.row(agent_id)
        if row is None:
            raise EngineError("This conversation is no sub-agent: send it a message.")
        parent = await self._reopen(row.facts.parent_id)
        conversation = await self._reopen(agent_id)  # last: it may be closed while it has no viewers
        if read_only := conversation.read_only or parent.read_only:
            raise EngineError(read_only)
        if self._scheduler.get(agent_id) is not None:  # another caller was first
            await self.tell(agent_id, text, sender)
        else:
            await self._go_on(conversation, row.facts, parent, text, sender)

    async def _go_on(
        self, conversation: Conversation, facts: AgentFacts, parent: Conversation, text: str, sender: str
    ) -> None:
        """Resume it with this text, and with its unread messages."""
        running = self._starter.add(conversation, facts, parent, background=True)
        try:
            receipt = await asyncio.shield(conversation.agents.recall(text, sender))
        except BaseException:
            self._scheduler.dismiss((running,))
            raise
        if isinstance(receipt, Refused):
            self._scheduler.dismiss((running,))
            raise EngineError(receipt.reason)
        self._board.is_background(parent.id, conversation.id)
        self._scheduler.start((running,))
