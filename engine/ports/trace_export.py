"""Interface of the queue of ended spans that wait to be exported."""

from __future__ import annotations

from typing import Protocol

from engine.records.traces import RejectedSpans, TraceBatch


class TraceQueue(Protocol):
    """The queue, shared by the processes on one database. Every method may raise StorageError."""

    async def open(self) -> None:
        """Let everything that ends from now on be queued; earlier runs are not exported."""
        ...

    async def waiting(self) -> bool:
        """True while something is queued."""
        ...

    async def claim(self, limit: int) -> TraceBatch | None:
        """The next spans, at most `limit`; until they are settled no other process gets any. None: there are none, or
        another living process sends.
        """
        ...

    async def settle(self, batch: TraceBatch, rejected: RejectedSpans) -> None:
        """Remove what was delivered, and count what the collector did not take of it."""
        ...

    async def give_back(self) -> None:
        """End the claim: nothing was delivered."""
        ...


class Closable(Protocol):
    """Work that ends with the engine."""

    async def close(self) -> None:
        """End it; returns within a few seconds."""
        ...
