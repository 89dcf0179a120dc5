"""Cancels runs of this process that another process wants cancelled (SPEC SDK-11)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from engine.conversation import Conversation
from engine.machine.states import is_busy
from engine.machine.stop_cause import StopCause
from engine.ports import StorageError
from engine.ports.run_store import CancelRequest, RunStore
from engine.updates import StateChanged, Update

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 0.25
"""Seconds between two looks while a run is under way; one costs 0.1 ms, and nothing between runs."""


class AgentEnder(Protocol):
    """Owner of the sub-agents, whose queue holds those that have not begun."""

    def stop(self, agent_ids: Iterable[str], by: StopCause) -> None:
        """Stop these; their text so far stays."""
        ...


class CancelWatcher:
    """Looks for requests while any conversation of this process is at work."""

    def __init__(self, runs: RunStore, opened: Mapping[str, Conversation], sub_agents: AgentEnder | None) -> None:
        self._runs = runs
        self._opened = opened
        self._sub_agents = sub_agents
        self._watching: asyncio.Task[None] | None = None
        self._seen: int | None = None

    def follow(self, update: Update) -> None:
        """Begin to look with the first run."""
        if isinstance(update, StateChanged) and is_busy(update.state) and not self.looks:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    @property
    def looks(self) -> bool:
        """True while it looks for requests."""
        return self._watching is not None and not self._watching.done()

    async def close(self) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))

    async def _watch(self) -> None:
        while any(is_busy(one.state) for one in self._opened.values()):
            try:
                version = await self._runs.foreign_version()
                if version != self._seen:
                    for request in await self._runs.take_requests():
                        self._cancel(request)
                    self._seen = version  # a read that failed is made again
            except StorageError as error:
                log.warning("requests to cancel could not be read: %s", error)
            await asyncio.sleep(LOOK_EVERY)

    def _cancel(self, request: CancelRequest) -> None:
        """Cancel as Esc does, and say who did; a sub-agent leaves its queue."""
        conversation = self._opened.get(request.conversation_id)
        if conversation is None:
            return
        log.info("another process cancels %s", request.run_id or request.conversation_id)
        if conversation.record.agent is not None and self._sub_agents is not None:
            self._sub_agents.stop((conversation.id,), StopCause.OUTSIDE)
        else:
            conversation.cancel(StopCause.OUTSIDE)
