"""`engine.ports.trace_export.TraceQueue` on SQLite."""

from __future__ import annotations

import time

from engine.records.trace_export import RejectedSpans, TraceBatch
from engine.store import trace_queue
from engine.store.connection import Transactions
from engine.store.ownership import Instance


class SqliteTraceQueue:
    """The queue of ended spans; one process at a time takes from it."""

    def __init__(self, transactions: Transactions, instance: Instance) -> None:
        self._transactions = transactions
        self._instance = instance

    async def open(self) -> None:
        """Let everything that ends from now on be queued."""
        await self._transactions.write(trace_queue.open_queue)

    async def waiting(self) -> bool:
        """True while something is queued."""
        return await self._transactions.read(trace_queue.waits)

    async def claim(self, limit: int) -> TraceBatch | None:
        """The next spans; None while there are none, or another living process sends."""
        place = await self._transactions.write(
            lambda connection: trace_queue.claim(connection, self._instance, time.time())
        )
        if place is None:
            return None
        batch: TraceBatch | None = None
        try:  # read beside the connection that moves are written on
            batch = await self._transactions.look(lambda connection: trace_queue.next_batch(connection, place, limit))
        finally:
            if batch is None:
                await self.give_back()
        return batch

    async def settle(self, batch: TraceBatch, rejected: RejectedSpans) -> None:
        """Remove what was delivered, and count what the collector did not take of it."""
        await self._transactions.write(
            lambda connection: trace_queue.settle(connection, self._instance, batch, rejected)
        )

    async def give_back(self) -> None:
        """End the claim."""
        await self._transactions.write(lambda connection: trace_queue.give_back(connection, self._instance))
