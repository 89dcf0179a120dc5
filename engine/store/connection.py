"""The connections of a store: one that writes, one transaction at a time, one that reads, one for long reads.

Each fault of a database file is one sentence for the user that names the fix.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial, wraps
from pathlib import Path
from types import CoroutineType
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar, cast

import aiosqlite

from engine.codec import CodecError
from engine.ports import DatabaseBusy, StorageError
from engine.ports.storage import DatabaseWaits
from engine.store.migrations import VERSION, version_of
from tools.shedding import SheddingOrder, shedding


class DamagedDatabase(StorageError):
    """The file is no whole Phoenix database; it was not touched. `fresh` is where a new one would be made."""

    def __init__(self, path: Path, fresh: Path, problem: str) -> None:
        super().__init__(
            f"The database {path} {problem}; it was not changed. Replace it with a backup, "
            "or move it away to start with a new one."
        )
        self.path = path
        self.fresh = fresh


class NewerDatabase(StorageError):
    """A later version of Phoenix wrote the file; it was not touched."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"The database {path} was written by a newer Phoenix (format {found}, this one reads {known}); "
            "update Phoenix to open it."
        )


class WritingStopped(StorageError):
    """Raised when the disk failed in a way that leaves its content unknown; nothing is written until a restart."""


def fresh_beside(path: Path) -> Path:
    """Path of a new database when the file at `path` is damaged."""
    return path.with_name(f"{path.stem}.fresh{path.suffix}")


def is_busy(error: sqlite3.Error) -> bool:
    """True where another program has the file."""
    return _primary(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def damage(error: sqlite3.Error) -> str:
    """Damage of a file that SQLite refuses; empty for any other error."""
    match _primary(error):
        case sqlite3.SQLITE_NOTADB:
            return "is not a database"
        case sqlite3.SQLITE_CORRUPT:
            return "is damaged"
        case _:
            return ""


def is_out_of_space(error: sqlite3.Error | OSError) -> bool:
    """True when the disk, or the user's share of it, is full."""
    if isinstance(error, OSError):
        return error.errno in {errno.ENOSPC, errno.EDQUOT}
    return _primary(error) == sqlite3.SQLITE_FULL


def is_read_only(error: sqlite3.Error | OSError) -> bool:
    """True when the file or its folder must not be written."""
    if isinstance(error, OSError):
        return error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}
    return _primary(error) in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


def sentence(error: sqlite3.Error | OSError, path: Path) -> StorageError:
    """The error as the user should read it. `WritingStopped` after an error of the disk itself."""
    if is_out_of_space(error):
        return StorageError(f"The disk is full and nothing was saved; free some space at {path.parent} and try again.")
    if isinstance(error, OSError):
        return StorageError(f"A database file cannot be used ({error.strerror}); check {error.filename}.")
    if damage(error):
        return DamagedDatabase(path, fresh_beside(path), damage(error))
    if _is_gone(error, path):
        return WritingStopped(
            f"The database {path} was moved or deleted while Phoenix had it open, so Phoenix has stopped writing; "
            "put it back, or restart Phoenix to begin with a new one."
        )
    match _primary(error):
        case sqlite3.SQLITE_IOERR:
            return WritingStopped(
                f"The disk failed while saving to {path}, so Phoenix has stopped writing; "
                "check the disk, then restart Phoenix."
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return DatabaseBusy(f"Another program is using the database {path}; try again in a moment.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StorageError(
                f"The database {path} cannot be written; check the permissions of the file and its folder."
            )
        case _:
            return StorageError(f"The database {path} rejected a change ({error}); please report this.")


def unreadable(error: CodecError, path: Path) -> StorageError:
    """Error for a row whose JSON has another form than this version writes."""
    problem = str(error).rstrip(".")
    return StorageError(f"A part of {path} cannot be read ({problem}); replace it with a backup.")


def _is_gone(error: sqlite3.Error, path: Path) -> bool:
    """True where SQLite has lost the file it had opened: its name leads to nothing, or to another file."""
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED:
        return True
    return _primary(error) in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR} and not (
        path.exists()
    )


def _primary(error: sqlite3.Error) -> int:
    """The result code without its extension; 0 where Python raised the error itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


DatabaseStamp: TypeAlias = tuple[tuple[int, int, int], ...]
"""Inode, size and time of change in nanoseconds of each file."""
FINE: Final = 1_000_000
"""A time of change that is no multiple of this many nanoseconds comes from a file system that stores them all."""
TOO_NEW_FINE: Final = 20_000_000
"""Nanoseconds: twice the longest tick of a kernel's clock (100 a second), by which a time of change may be late."""
TOO_NEW_COARSE: Final = 2_000_000_000
"""Nanoseconds for a file system that stores coarse times: FAT counts by two seconds."""


def stamp_files(path: Path) -> DatabaseStamp | None:
    """Fingerprint of a database and its log, about 3 µs; another one after each commit of any process.

    None where a later change might leave the same: a file is missing, or changed just now.
    """
    found: list[tuple[int, int, int]] = []
    for name in (path, f"{path}-wal"):
        try:
            one = os.stat(name)  # noqa: PTH116 - a Path costs three times as much, between Enter and the request
        except OSError:
            continue
        found.append((one.st_ino, one.st_size, one.st_mtime_ns))
    newest = max((changed for _, _, changed in found), default=None)
    if newest is None:
        return None
    wait = TOO_NEW_FINE if newest % FINE else TOO_NEW_COARSE
    return tuple(found) if time.time_ns() - newest >= wait else None


T = TypeVar("T")
P = ParamSpec("P")
G = TypeVar("G", bound="TableGroup")


THREAD: Final = "phoenix-database"
"""Name of the thread of each connection."""
READING_ENDS: Final = 1.0
"""Seconds in which a read that is under way must end when the store closes; it is interrupted."""
WRITING_ENDS: Final = 6.0
"""Seconds in which the writes that wait must end then; the journal undoes one that does not."""


class StoreConnection(aiosqlite.Connection):
    """A connection on its own thread that runs whole jobs, in order.

    A job is one item of the thread's queue. Its caller may be cancelled; the job never is, so no
    transaction is left open (FAULTS 31).
    """

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        self._thread.daemon = True  # an app that dies without closing the store must still end
        self._thread.name = THREAD

    async def open(self) -> None:
        """Start the thread and connect; when this fails the thread has ended too."""
        try:
            await self
        except BaseException:
            if self._thread.ident is not None:  # else the system starts no more threads
                self._thread.join()  # it can only answer a loop that may be gone by then
            raise

    async def end(self, within: float, *, interrupts: bool = False) -> None:
        """Close it once its jobs are done; one that takes longer is left to its thread, which ends with Phoenix."""
        if interrupts and self._connection is not None:
            self._connection.interrupt()
        closing = asyncio.ensure_future(self.close())
        await asyncio.wait({closing}, timeout=within)
        if closing.done():
            closing.result()
        else:
            closing.cancel()

    async def run(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run `job` on the connection and return its result; its exceptions pass through.

        Raises:
            StorageError: the store is closed.
        """
        if not self._running or self._connection is None:
            raise StorageError("The database is closed; restart Phoenix.")
        execute = cast(
            "Callable[[Callable[[], T]], Awaitable[T]]",
            self._execute,
        )
        return await execute(partial(job, self._conn))


TRY: Final = "PRAGMA busy_timeout = 500"
"""Milliseconds that SQLite waits by itself; then Phoenix decides about a longer wait."""
IN_A_CHANGE: Final = "PRAGMA busy_timeout = 30000"
"""Timeout in milliseconds of a change too large for memory, which waits for readers in the middle of a statement."""
TOO_NEW: Final = 2_000_000_000
"""Nanoseconds in which a second change may bear the time of the first."""


class Transactions:
    """Jobs on a writing and a reading connection, each in a transaction of its own."""

    def __init__(
        self,
        writer: StoreConnection,
        reader: StoreConnection,
        path: Path,
        reading: Callable[[], sqlite3.Connection] | None,
        waits: DatabaseWaits,
    ) -> None:
        self.waits = waits
        self._writer = writer
        self._reader = reader
        self._path = path
        self._reading = reading
        self._looker: StoreConnection | None = None
        self._opening = asyncio.Lock()
        self._stopped: WritingStopped | None = None
        self._version = 0
        self._seen: DatabaseStamp | None = None
        """State of the files when `_version` was read."""
        self._read_version = 0
        self._read_at: DatabaseStamp | None = None
        """The same for `version`."""
        self._shrinking: set[asyncio.Future[None]] = set()
        shedding.add("caches of the database", SheddingOrder.READ, self._count_open, self.shrink)

    async def write(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run `job` in one transaction; committed when this returns.

        Raises:
            StorageError: nothing of it was written, or, after an error of the disk, nothing counts as written.
        """
        return await self._writer.run(partial(self._convert_errors, partial(self._write, job)))

    async def read(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run `job` on one unchanging view of the database."""
        return await self._reader.run(partial(self._convert_errors, partial(self._read, job)))

    async def look(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read that may take long: on a connection of its own, opened with the first one, no other read waits.

        Raises:
            StorageError, OSError, sqlite3.Error: also from opening.
        """
        if self._reading is None:
            return await self.read(job)
        async with self._opening:
            if self._looker is None:
                looker = StoreConnection(self._reading)
                await looker.open()
                self._looker = looker
        return await self._looker.run(partial(self._convert_errors, partial(self._read, job)))

    async def foreign_version(self) -> int:
        """Version number that changes with each commit of another process; our own writes all go through this
        connection.

        Called once a second, so the database, in its thread, is read only after its files have changed.

        Raises:
            StorageError: the database does not answer.
        """
        stands = _stamp(self._path)
        if stands is None or stands != self._seen:
            self._version = await self._writer.run(partial(self._convert_errors, data_version))
            self._seen = stands
        return self._version

    async def version(self) -> int:
        """Version number that changes with each commit, of this process too.

        Raises:
            StorageError: the database does not answer.
        """
        if self._reader is self._writer:  # in memory: there is no other connection, and no file to look at
            return await self._reader.run(partial(self._convert_errors, _own_changes))
        stands = _stamp(self._path)
        if stands is None or stands != self._read_at:
            self._read_version = await self._reader.run(partial(self._convert_errors, data_version))
            self._read_at = stands
        return self._read_version

    def file_stamp(self) -> DatabaseStamp | None:
        """Fingerprint of the files that changes with each commit of any process; None where it is unknown."""
        return stamp_files(self._path)

    def _count_open(self) -> int:
        return len(self._connections())

    def _connections(self) -> set[StoreConnection]:
        return {one for one in (self._writer, self._reader, self._looker) if one is not None}

    def shrink(self) -> None:
        """Let each connection free its pages, after its current job."""
        for one in self._connections():
            task = asyncio.ensure_future(one.run(_shrink))
            self._shrinking.add(task)
            task.add_done_callback(self._shrunk)

    def _shrunk(self, task: asyncio.Future[None]) -> None:
        self._shrinking.discard(task)
        if not task.cancelled():
            task.exception()  # a closing store, or a failing disk, is reported where it matters

    async def close(self) -> None:
        """End all when everything queued is done. Raises StorageError; then all have ended, too."""
        await asyncio.gather(*self._shrinking, return_exceptions=True)
        readers = self._connections() - {self._writer}
        try:
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self._writer.end, WRITING_ENDS)
                for reader in readers:
                    stack.push_async_callback(reader.end, READING_ENDS, interrupts=True)
        except (sqlite3.Error, OSError) as error:
            raise sentence(error, self._path) from error

    def _convert_errors(self, job: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
        try:
            return job(connection)
        except (sqlite3.Error, OSError) as error:
            raise sentence(error, self._path) from error
        except CodecError as error:
            raise unreadable(error, self._path) from error

    def _write(self, job: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
        if self._stopped:
            raise self._stopped
        try:
            self._insist(connection, "BEGIN IMMEDIATE")
            self._refuse_newer(connection)
            result = job(connection)
            self._insist(connection, "COMMIT")
        except BaseException as error:
            _roll_back(connection)
            if isinstance(error, sqlite3.Error):
                failure = sentence(error, self._path)
                self._stopped = failure if isinstance(failure, WritingStopped) else None
                raise failure from error
            raise
        return result

    def _insist(self, connection: sqlite3.Connection, statement: str) -> None:
        """Begin or commit, as often as it takes while another program has the file; each try is short."""
        connection.execute(TRY)
        try:
            while True:
                try:
                    connection.execute(statement)
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or not self.waits.go_on():
                        raise
                else:
                    return
        finally:
            self.waits.over()
            connection.execute(IN_A_CHANGE)

    def _read(self, job: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
        connection.execute(TRY)
        try:
            while True:
                connection.execute("BEGIN")
                try:
                    return job(connection)
                except sqlite3.OperationalError as error:
                    if not is_busy(error) or not self.waits.go_on():
                        raise
                finally:
                    _roll_back(connection)
        finally:
            self.waits.over()

    def _refuse_newer(self, connection: sqlite3.Connection) -> None:
        """A newer Phoenix may bring the file up to date while this one runs (FAULTS 76)."""
        found = version_of(connection)
        if found > VERSION:
            raise NewerDatabase(self._path, found, VERSION)


def _stamp(path: Path) -> DatabaseStamp | None:
    """Fingerprint of the files at `path`; None when a file cannot be read, or is too new to tell."""
    found: list[tuple[int, int, int]] = []
    for name in (path, f"{path}-wal"):
        try:
            one = os.stat(name)  # noqa: PTH116 - a Path costs three times as much, once a second
        except OSError:
            continue
        found.append((one.st_ino, one.st_size, one.st_mtime_ns))
    newest = max((changed for _, _, changed in found), default=None)
    if newest is None or time.time_ns() - newest < TOO_NEW:
        return None
    return tuple(found)


def data_version(connection: sqlite3.Connection) -> int:
    """Another number after each commit over another connection."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _own_changes(connection: sqlite3.Connection) -> int:
    return connection.total_changes


def _shrink(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA shrink_memory")


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        with suppress(sqlite3.Error):  # a failed disk may refuse this too; the journal undoes it at the next opening
            connection.execute("ROLLBACK")


async def open_connections(
    writing: Callable[[], sqlite3.Connection],
    reading: Callable[[], sqlite3.Connection] | None,
    path: Path,
    waits: DatabaseWaits | None = None,
) -> Transactions:
    """Open the writing connection and, where there is a file to read, the reading one.

    Raises:
        StorageError, OSError, sqlite3.Error: from opening.
    """
    waits, writer = waits or DatabaseWaits(), StoreConnection(writing)
    await writer.open()
    if reading is None:
        return Transactions(writer, writer, path, None, waits)
    reader = StoreConnection(reading)
    try:
        await reader.open()
    except BaseException:
        await writer.close()
        raise
    return Transactions(writer, reader, path, reading, waits)


class TableGroup:
    """A part of the store: the methods that read and write some of its tables, over the connections that all share."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions


def reads(
    method: Callable[Concatenate[G, sqlite3.Connection, P], T],
) -> Callable[Concatenate[G, P], CoroutineType[Any, Any, T]]:
    """Run a method on one unchanging view of the database."""

    @wraps(method)
    async def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.transactions.read(lambda connection: method(self, connection, *args, **kwargs))

    return run  # type: ignore[return-value]  # mypy knows no narrower type of an async function than Coroutine


def reads_long(
    method: Callable[Concatenate[G, sqlite3.Connection, P], T],
) -> Callable[Concatenate[G, P], CoroutineType[Any, Any, T]]:
    """Run a method that may take long on a connection of its own, so that no other read waits."""

    @wraps(method)
    async def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.transactions.look(lambda connection: method(self, connection, *args, **kwargs))

    return run  # type: ignore[return-value]  # mypy knows no narrower type of an async function than Coroutine


def writes(
    method: Callable[Concatenate[G, sqlite3.Connection, P], T],
) -> Callable[Concatenate[G, P], CoroutineType[Any, Any, T]]:
    """Run a method in one transaction, committed when the call returns; see `Transactions.write`."""

    @wraps(method)
    async def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.transactions.write(lambda connection: method(self, connection, *args, **kwargs))

    return run  # type: ignore[return-value]  # mypy knows no narrower type of an async function than Coroutine
