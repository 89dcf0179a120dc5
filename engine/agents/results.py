"""Detection and delivery of a sub-agent's end, in background tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping

from engine.agents.views import AgentBoard
from engine.conversation import Conversation
from engine.executor.inbox import UNWANTED
from engine.executor.requests import Receipt
from engine.machine import agent_texts
from engine.machine.states import AgentOutcome, AgentStatus, Compacting, Errored, Idle, State
from engine.ports import Clock, StorageError
from engine.ports.agent_store import AgentStore
from engine.updates import RunEnded, StateChanged, Update

log = logging.getLogger(__name__)

SUCCESS = "success"


class AgentResults:
    """Reads outcomes from the store, and wakes parents at rest for them (SPEC UNI-24)."""

    def __init__(self, store: AgentStore, opened: Mapping[str, Conversation], board: AgentBoard, clock: Clock) -> None:
        self._store = store
        self._opened = opened
        self._board = board
        self._clock = clock
        self._compacting: set[str] = set()
        """Parents whose user asked for a summary."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._told = asyncio.Event()

    @property
    def under_way(self) -> bool:
        """True while results are undelivered."""
        return bool(self._tasks)

    async def one_more(self) -> None:
        """Wait for the next delivery."""
        self._told.clear()
        await self._told.wait()

    async def quiet(self) -> None:
        """Wait until everything is delivered."""
        while self._tasks:
            await asyncio.wait(self._tasks - {asyncio.current_task()})

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Do this in the background; a failure goes to the log."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def outcome(self, agent_id: str, state: State) -> AgentOutcome:
        """Outcome in the store; a store that fails makes it a failure, never a parent that waits."""
        try:
            row = await self._store.row(agent_id)
        except StorageError as error:
            return AgentOutcome(agent_id, AgentStatus.FAILURE, reason=str(error))
        if row is not None and row.outcome is not None:
            return row.outcome
        reason = state.message if isinstance(state, Errored) else agent_texts.INTERRUPTED
        return AgentOutcome(agent_id, AgentStatus.FAILURE, reason=reason)

    def wake(self, parent: Conversation) -> None:
        """Let an idle parent read its new results; a busy one reads them before its next request (SPEC UNI-24)."""
        if self._opened.get(parent.id) is parent and isinstance(parent.state, Idle):
            parent.agents.arrived()

    def follow_parent(self, parent: Conversation, update: Update) -> None:
        """Wake a parent for results that waited for the end of its run, or of a summary that its user asked for."""
        match update:
            case RunEnded(status=status):
                if status == SUCCESS:
                    self._wake_for_background(parent)
                self.start(self.recount(parent))
            case StateChanged(state=Compacting()):
                self._compacting.add(parent.id)
            case StateChanged(state=Idle()) if parent.id in self._compacting:
                self._compacting.discard(parent.id)
                self._wake_for_background(parent)
            case _:
                pass  # no other state is idle

    def parent_stopped(self, parent_id: str) -> None:
        """Keep new results waiting, since the user stopped the parent."""
        self._compacting.discard(parent_id)

    async def hear(self, parent: Conversation, outcome: AgentOutcome, receipt: Receipt) -> None:
        """Deliver later a result that came just as its parent was stopped, too late for its call."""
        if receipt == UNWANTED and outcome.status is AgentStatus.SUCCESS:
            await self._store.leave(outcome.agent_id, self._clock.now())
            await self.recount(parent)

    async def recount(self, parent: Conversation) -> None:
        """Count the results that it has not read yet."""
        if self._opened.get(parent.id) is not parent:
            return
        try:
            self._board.count(parent.id, await self._store.waiting(parent.id))
        except StorageError as error:
            log.warning("the results that wait could not be counted: %s", error)

    def _wake_for_background(self, parent: Conversation) -> None:
        if any(view.background for view in self._board.views(parent.id)):
            self.wake(parent)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._told.set()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a sub-agent's end could not be told", exc_info=error)
