"""Whole conversations written, removed and expired in short transactions, so that no other conversation waits."""

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
from engine.store.connection import Transactions
from engine.store.conversations import list_agent_ids
from engine.store.messages import list_attachment_files, remove_unshared_files
from engine.store.opening import Remains
from engine.store.ownership import Instance

ROWS = 300
"""Rows per slice of a table without long texts; runs take their traces and spans along."""
_MESSAGES = 500
_SMALL = ("copied_rows", "events", "runs", "turns", "file_steps")


def list_partial(connection: sqlite3.Connection, instance: Instance) -> list[str]:
    """The conversations that a dead process left half made or half removed."""
    rows = connection.execute("SELECT id, partial FROM conversations WHERE partial IS NOT NULL").fetchall()
    return [row["id"] for row in rows if instance.living_pid(connection, row["partial"]) is None]


def list_call_ids(connection: sqlite3.Connection, conversation_id: str) -> list[str]:
    """The ids of a conversation's calls, as its tools were given them."""
    rows = connection.execute("SELECT tool_use_id FROM tool_calls WHERE conversation_id = ?", (conversation_id,))
    return [row["tool_use_id"] for row in rows]


def remove_slice(connection: sqlite3.Connection, conversation_id: str, size: int) -> bool:
    """Remove messages with about `size` bytes of text, or a slice of other rows; True when nothing is left."""
    last = find_slice_end(connection, conversation_id, 0, size)
    if last is not None:
        connection.execute("DELETE FROM messages WHERE conversation_id = ? AND seq <= ?", (conversation_id, last))
        return False
    for table in _SMALL:
        done = connection.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE conversation_id = ? LIMIT {ROWS})",
            (conversation_id,),
        )
        if done.rowcount:
            return False
    return True


def find_slice_end(connection: sqlite3.Connection, conversation_id: str, after: int, size: int) -> int | None:
    """The seq up to which the messages behind `after` hold about `size` bytes with their calls; None without any."""
    rows = connection.execute(
        f"""SELECT seq, length(content_json) + length(text) + COALESCE((SELECT SUM(length(input_json)
                + length(output_text) + length(output_json) + length(display_json)) FROM tool_calls
                WHERE assistant_message_id = m.id), 0) AS size
            FROM messages AS m WHERE conversation_id = ? AND seq > ? ORDER BY seq LIMIT {_MESSAGES}""",
        (conversation_id, after),
    )
    last, total = None, 0
    for row in rows:
        last, total = int(row["seq"]), total + int(row["size"])
        if total >= size:
            break
    return last


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
            connection.execute(
                "UPDATE conversations SET partial = ? WHERE id = ?", (self._instance.id, conversation_id)
            )
            return True

        async def work() -> bool:
            marked = await self._transactions.write(mark)
            if marked:
                await self._empty(conversation_id)
            return marked

        return await self._to_the_end(work)

    async def clear(self) -> None:
        """Remove conversations that a killed process left incomplete."""
        left = await self._transactions.read(lambda connection: list_partial(connection, self._instance))
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

        await self._run_timed(lambda connection: slice_of(connection, first=True))
        try:
            while not done:
                await asyncio.sleep(PAUSE)
                await self._run_timed(lambda connection: slice_of(connection, first=False))
        except StorageError:
            with suppress(StorageError):  # the next start removes it
                await self._empty(work.conversation_id)
            raise
        return done[0]

    async def _empty(self, conversation_id: str) -> None:
        for agent_id in await self._transactions.read(partial(list_agent_ids, parent_id=conversation_id)):
            await self._empty(agent_id)
        # Before the rows that name them, so that a kill in between leaves no file behind.
        calls = await self._transactions.read(partial(list_call_ids, conversation_id=conversation_id))
        await asyncio.to_thread(self._remains.remove, conversation_id, calls)
        empty = False
        while not empty:
            empty = await self._run_timed(lambda connection: remove_slice(connection, conversation_id, self.pace.bytes))
            await asyncio.sleep(PAUSE)

        def remove_row(connection: sqlite3.Connection) -> list[str]:
            names = list_attachment_files(connection, conversation_id)
            connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))
            return names

        names = await self._transactions.write(remove_row)
        if names:
            await self._transactions.write(lambda connection: remove_unshared_files(connection, self._folder, names))

    async def _run_timed(self, job: Callable[[sqlite3.Connection], T]) -> T:
        def measure(connection: sqlite3.Connection) -> tuple[T, float]:
            began = time.thread_time()
            result = job(connection)
            return result, time.thread_time() - began

        result, seconds = await self._transactions.write(measure)
        self.pace.took(seconds)
        return result


_EXPIRED = """WITH RECURSIVE gone (id, depth) AS (
        SELECT id, 0 FROM conversations
            WHERE kind = 'user' AND partial IS NULL AND COALESCE(deleted_at, archived_at) < :before
        UNION
        SELECT c.id, gone.depth + 1 FROM conversations AS c JOIN gone ON c.superseded_by = gone.id
            JOIN conversations AS head ON head.id = gone.id
            WHERE c.partial IS NULL AND c.deleted_at IS NULL AND c.archived_at IS NULL AND head.deleted_at IS NULL)
    SELECT c.id FROM gone JOIN conversations AS c ON c.id = gone.id GROUP BY c.id ORDER BY MAX(depth) DESC, c.rowid"""
"""Branches that an archived one took the place of go with it, and ahead of it, or they would be back in the list."""
_SIZE = """SELECT
    (SELECT COALESCE(SUM(length(content_json) + length(text)), 0) FROM messages WHERE conversation_id = c.id) +
    (SELECT COALESCE(SUM(length(input_json) + length(output_text) + length(output_json) + length(display_json)), 0)
        FROM tool_calls WHERE conversation_id = c.id) +
    (SELECT COALESCE(SUM(bytes), 0) FROM attachments WHERE conversation_id = c.id) AS size
    FROM conversations AS c"""


class PutAway(Struct, frozen=True):
    """Conversations in the archive and in the trash."""

    count: int = 0
    bytes: int = 0
    """Bytes of their texts and images."""
    expired: int = 0
    """Number of them that exceed the retention time."""


def list_expired(connection: sqlite3.Connection, before: float) -> list[str]:
    """Conversations archived or in the trash since before a time; for the trash, the time of removal counts."""
    return [row["id"] for row in connection.execute(_EXPIRED, {"before": before})]


def count_put_away(connection: sqlite3.Connection, before: float | None) -> PutAway:
    """Contents of archive and trash; `before` None: nothing expires. Reads every message of theirs."""
    rows = connection.execute(
        f"""{_SIZE} WHERE c.kind = 'user' AND c.partial IS NULL
            AND (c.archived_at IS NOT NULL OR c.deleted_at IS NOT NULL)"""
    ).fetchall()
    due = len(list_expired(connection, before)) if before is not None else 0
    return PutAway(len(rows), sum(row["size"] for row in rows), due)
