"""The store on SQLite. `open_store` and `open_ephemeral_store` are all that the wiring needs."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from engine.ports import StorageError
from engine.ports.storage import DatabaseWaits
from engine.store.connection import (
    DamagedDatabase,
    NewerDatabase,
    Transactions,
    WritingStopped,
    is_busy,
    is_out_of_space,
    is_read_only,
    open_connections,
    sentence,
)
from engine.store.opening import (
    BUSY_SECONDS,
    StorePaths,
    open_copy_in_memory,
    open_for_reading,
    open_for_writing,
    open_in_memory,
)
from engine.store.store import Store
from tools.files.own_files import make_folder

__all__ = [
    "BUSY_SECONDS",
    "DamagedDatabase",
    "NewerDatabase",
    "Store",
    "StorePaths",
    "WritingStopped",
    "open_ephemeral_store",
    "open_store",
]


PAUSE = 0.05
"""Seconds between two tries to open a database that is busy."""
AS_FOUND = "Your conversations are shown as they were at the start."
NOT_SHOWN = "Your conversations are safe but cannot be shown."
"""Ahead of the reason why nothing is kept."""


async def open_store(
    paths: StorePaths,
    *,
    fresh_beside: bool = False,
    patience: float = BUSY_SECONDS,
    waits: DatabaseWaits | None = None,
) -> Store:
    """Open the store; where the disk cannot be written a copy of it in memory, or an empty one, with its `warning` set.

    `patience` is for how many seconds a database is waited for that another process keeps busy; with `waits` those
    decide, and tell of it.

    Raises:
        DamagedDatabase: the file is damaged; with `fresh_beside` the new one beside it is used instead.
        StorageError: the file cannot be opened; the sentence names the fix.
    """
    try:
        transactions = await _open_patiently(paths, time.monotonic() + patience, waits)
    except (StorageError, sqlite3.Error, OSError) as error:
        failure = error if isinstance(error, StorageError) else sentence(error, paths.database)
        if isinstance(failure, DamagedDatabase) and fresh_beside:
            return await open_store(replace(paths, database=failure.fresh))
        warning = "" if isinstance(error, StorageError) else _why_in_memory(error, paths.database.parent)
        if not warning:
            raise failure from error
        if not paths.database.exists():
            return await open_ephemeral_store(warning)
        return await _open_copy(paths, warning) or await open_ephemeral_store(f"{NOT_SHOWN} {warning}")
    return Store(transactions, paths)


async def _open_patiently(paths: StorePaths, end: float, waits: DatabaseWaits | None) -> Transactions:
    """Try repeatedly while the database is busy, until `end`; each try is short, so that it can be given up."""
    reading = partial(open_for_reading, paths.database)
    try:
        while True:
            try:
                return await open_connections(partial(open_for_writing, paths), reading, paths.database, waits)
            except sqlite3.Error as error:
                goes_on = waits.go_on() if waits is not None else time.monotonic() <= end
                if not is_busy(error) or not goes_on:
                    raise
            await asyncio.sleep(PAUSE)
    finally:
        if waits is not None:
            waits.over()


async def open_ephemeral_store(warning: str = "") -> Store:
    """Open a store in memory; its images are in a private folder. All of it is gone at close."""
    return await _open_in_memory(open_in_memory, warning)


async def _open_copy(paths: StorePaths, warning: str) -> Store | None:
    """Open a store in memory with the contents of the file; None where that cannot be read."""
    try:
        return await _open_in_memory(
            partial(open_copy_in_memory, paths.database), f"{AS_FOUND} {warning}", paths.attachments
        )
    except NewerDatabase:
        raise
    except (StorageError, sqlite3.Error, OSError):
        return None


async def _open_in_memory(
    opening: Callable[[], sqlite3.Connection], warning: str, attachments: Path | None = None
) -> Store:
    folder = Path(tempfile.mkdtemp(prefix="phoenix-"))
    paths = StorePaths.under(folder)
    try:
        _furnish(paths, attachments)
        transactions = await open_connections(opening, None, Path(":memory:"))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Store(transactions, paths, warning=warning, temporary=folder)


def _furnish(paths: StorePaths, attachments: Path | None) -> None:
    for part in (paths.attachments, paths.locks):
        make_folder(part)
    if attachments is not None and attachments.is_dir():
        for image in attachments.iterdir():
            (paths.attachments / image.name).symlink_to(image)


def _why_in_memory(error: sqlite3.Error | OSError, folder: Path) -> str:
    """The banner where `folder` cannot be written; empty for an error of another kind."""
    if is_out_of_space(error):
        cause, fix = f"The disk at {folder} is full", "free some space"
    elif is_read_only(error):
        cause, fix = f"The folder {folder} cannot be written", "make it writable"
    else:
        return ""
    return (
        f"{cause}, so this session is kept in memory only and is lost when Phoenix closes; {fix} and restart Phoenix."
    )
