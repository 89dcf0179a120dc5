"""Whole conversations written and removed in short transactions, so that no other conversation waits to be stored."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct

from engine.ports import StorageError
from engine.store import agent_rows, attachments, removing
from engine.store.connection import Transactions
from engine.store.ownership import Instance
from engine.store.remains import Remains

T = TypeVar("T")
FIRST_BYTES = 150_000
"""Text of the first transaction: about 25 ms with its index."""
LEAST_BYTES, MOST_BYTES = 50_000, 2_000_000
WANTED_SECONDS = 0.04
"""Processor time of a transaction; with its commit it stays within 0.1 s on a machine that has nothing else to do."""
PAUSE = 0.005
"""Seconds between two transactions, in which another process gets its turn."""


class SlicePace(Struct, eq=False):
    """Bytes of text for one transaction, adapted to the time the last ones took on this machine."""

    bytes: int = FIRST_BYTES
    fixed: bool = False

    def took(self, seconds: float) -> None:
        """Halve or double at the most."""
        if not self.fixed:
            factor = min(max(WANTED_SECONDS / max(seconds, 0.001), 0.5), 2.0)
            self.bytes = min(max(int(self.bytes * factor), LEAST_BYTES), MOST_BYTES)


class Work(Protocol):
    """Creation of the conversation `conversation_id`, a slice at a time; each method runs in a transaction."""

    @property
    def conversation_id(self) -> str:
        """The one that is being made."""
        ...

    def begin(self, connection: sqlite3.Connection, by: str) -> None:
        """Insert its row, marked as partial and made by this process."""
        ...

    def go_on(self, connection: sqlite3.Connection, size: int) -> bool:
        """Write about `size` bytes more; whether everything is there now."""
        ...

    def finish(self, connection: sqlite3.Connection) -> None:
        """Make it whole and visible."""
        ...


class Slices:
    """One long piece of work at a time, which continues when its caller is cancelled."""

    def __init__(
        self,
        transactions: Transactions,
        instance: Instance,
        folder: Path,
        remains: Remains = Remains(),  # noqa: B008 - a frozen value
        pace: SlicePace | None = None,
    ) -> None:
        self._transactions = transactions
        self._instance = instance
        self._folder = folder
        self._remains = remains
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[object]] = set()
        self.pace = pace or SlicePace()

    async def make(self, work: Work, at: float, last: Callable[[sqlite3.Connection], T]) -> T:
        """Write a conversation; `last` is done in the transaction that makes it visible.

        Raises:
            StorageError: nothing of it stays.
        """
        return await self._to_the_end(lambda: self._make(work, at, last))

    async def remove(
        self, conversation_id: str, at: float, still: Callable[[sqlite3.Connection], bool] | None = None
    ) -> bool:
        """Remove a conversation with everything that belongs to it; it is hidden from the first transaction on.

        With `still`, that transaction calls it first, and an open conversation stays: False, and nothing is done.

        Raises:
            OwnedElsewhere: a living process has it.
            StorageError: it is not all gone; the next start goes on.
        """

        def mark(connection: sqlite3.Connection) -> bool:
            if still is not None and not still(connection):
                return False
            ours = self._instance.owns(connection, conversation_id)  # raises if another process has it
            if still is not None and ours:
                return False
            self._instance.register(connection, at)
            removing.mark(connection, conversation_id, self._instance.id)
            return True

        async def work() -> bool:
            marked = await self._transactions.write(mark)
            if marked:
                await self._empty(conversation_id)
            return marked

        return await self._to_the_end(work)

    async def clear(self) -> None:
        """Remove conversations that a killed process left incomplete."""
        left = await self._transactions.read(lambda connection: removing.left(connection, self._instance))
        for conversation_id in left:
            await self._to_the_end(partial(self._empty, conversation_id))

    async def _to_the_end(self, work: Callable[[], Awaitable[T]]) -> T:
        async def alone() -> T:
            async with self._lock:
                return await work()

        task = asyncio.ensure_future(alone())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _make(self, work: Work, at: float, last: Callable[[sqlite3.Connection], T]) -> T:
        done: list[T] = []

        def slice_of(connection: sqlite3.Connection, *, first: bool) -> None:
            if first:
                self._instance.register(connection, at)
                work.begin(connection, self._instance.id)
            if work.go_on(connection, self.pace.bytes):
                work.finish(connection)
                done.append(last(connection))

        await self._timed(lambda connection: slice_of(connection, first=True))
        try:
            while not done:
                await asyncio.sleep(PAUSE)
                await self._timed(lambda connection: slice_of(connection, first=False))
        except StorageError:
            with suppress(StorageError):  # the next start removes it
                await self._empty(work.conversation_id)
            raise
        return done[0]

    async def _empty(self, conversation_id: str) -> None:
        for agent_id in await self._transactions.read(partial(agent_rows.ids_of, parent_id=conversation_id)):
            await self._empty(agent_id)
        # Before the rows that name them, so that a kill in between leaves no file behind.
        calls = await self._transactions.read(partial(removing.calls_of, conversation_id=conversation_id))
        await asyncio.to_thread(self._remains.remove, conversation_id, calls)
        empty = False
        while not empty:
            empty = await self._timed(
                lambda connection: removing.remove_some(connection, conversation_id, self.pace.bytes)
            )
            await asyncio.sleep(PAUSE)

        def remove_row(connection: sqlite3.Connection) -> list[str]:
            names = attachments.files_of(connection, conversation_id)
            connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))
            return names

        names = await self._transactions.write(remove_row)
        if names:
            await self._transactions.write(
                lambda connection: attachments.remove_unshared(connection, self._folder, names)
            )

    async def _timed(self, job: Callable[[sqlite3.Connection], T]) -> T:
        def timed(connection: sqlite3.Connection) -> tuple[T, float]:
            began = time.thread_time()
            result = job(connection)
            return result, time.thread_time() - began

        result, seconds = await self._transactions.write(timed)
        self.pace.took(seconds)
        return result
