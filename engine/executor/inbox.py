"""The inbox of one conversation: cancel first, then the user, then the executor's answers (SPEC STM-00)."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Final

from msgspec import Struct, field

from engine.executor.requests import Receipt, Refused, RunCaps
from engine.machine.events import Event
from engine.ports import Write

UNWANTED: Final = Refused("nobody waits for this any more")
"""The answer to an entry that was not wanted when its turn came."""


class Priority(IntEnum):
    """Order of service."""

    CANCEL = 0
    USER = 1
    OUTCOME = 2


class InboxEntry(Struct, eq=False):
    """An event to come: built when its turn comes, so that the facts in it are those of that moment."""

    build: Callable[[], Event]
    message_id: str = ""
    caps: RunCaps = field(default_factory=RunCaps)
    receipt: asyncio.Future[Receipt] | None = None
    writes: tuple[Write, ...] = ()
    """Writes for the same transaction, if the machine accepts the event, even one without other changes."""
    wanted: Callable[[], Awaitable[bool]] | None = None
    """Condition evaluated when its turn comes, while no other move can be made; None: always wanted. May raise
    StorageError.
    """

    def settle(self, receipt: Receipt) -> None:
        """Complete the receipt, if the sender still waits."""
        if self.receipt is not None and not self.receipt.done():
            self.receipt.set_result(receipt)


class Inbox(Struct, eq=False):
    """A priority queue; within a priority, first come, first served."""

    _heap: list[tuple[Priority, int, InboxEntry]] = field(default_factory=list[tuple[Priority, int, InboxEntry]])
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: str = ""

    def put(self, priority: Priority, entry: InboxEntry) -> None:
        """Add one; never waits. Once it is closed, the entry is refused."""
        if self._closed:
            entry.settle(Refused(self._closed))
            return
        heapq.heappush(self._heap, (priority, next(self._order), entry))
        self._arrived.set()

    @property
    def waiting(self) -> bool:
        """True while an entry waits."""
        return bool(self._heap)

    @property
    def stops(self) -> bool:
        """True while a stop of the user is unserved."""
        return bool(self._heap) and self._heap[0][0] is Priority.CANCEL

    async def take(self) -> InboxEntry:
        """The next one by priority."""
        while not self._heap:
            self._arrived.clear()
            await self._arrived.wait()
        return heapq.heappop(self._heap)[2]

    def refuse_all(self, reason: str) -> None:
        """Settle everything that waits, and whatever comes later: the conversation closes."""
        self._closed = reason
        while self._heap:
            heapq.heappop(self._heap)[2].settle(Refused(reason))
