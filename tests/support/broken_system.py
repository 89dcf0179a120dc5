"""Faults of the system, made in a fork of the program: threads, processes and writes of SQLite that fail."""

from __future__ import annotations

import errno
import os
import socket
import sqlite3
import threading
from collections.abc import Callable
from importlib import import_module

from engine.store.connection import Transactions
from engine.store.store import Store
from tools.process.link import ZygoteLink


def no_threads() -> None:
    """Let the system refuse every thread."""

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threading.Thread.start = start  # type: ignore[method-assign]  # the fault itself


def _helper_fails(number: int) -> None:
    def spawn(self: ZygoteLink) -> tuple[socket.socket, int]:
        raise OSError(number, os.strerror(number))

    ZygoteLink._spawn = spawn  # type: ignore[method-assign]  # the fault itself


def no_processes() -> None:
    """Let the system refuse every process."""
    _helper_fails(errno.EAGAIN)


def no_files() -> None:
    """Let the system open no more files for the helper."""
    _helper_fails(errno.EMFILE)


def _commits_fail(code: int, words: str, allowed: int) -> None:
    """Let SQLite fail at each COMMIT behind the first `allowed` ones."""
    real: Callable[[Transactions, sqlite3.Connection, str], None] = Transactions._insist
    done = 0

    def insist(self: Transactions, connection: sqlite3.Connection, statement: str) -> None:
        nonlocal done
        done += statement == "COMMIT"
        if statement == "COMMIT" and done > allowed:
            error = sqlite3.OperationalError(words)
            error.sqlite_errorcode = code
            raise error
        real(self, connection, statement)

    Transactions._insist = insist  # type: ignore[method-assign]  # the fault itself


def first_write_full() -> None:
    """Fill the disk before the first write."""
    _commits_fail(sqlite3.SQLITE_FULL, "database or disk is full", 0)


def write_full() -> None:
    """Fill the disk in the middle of a run."""
    _commits_fail(sqlite3.SQLITE_FULL, "database or disk is full", MIDDLE)


def write_fails() -> None:
    """Let a write fail in the middle of a run."""
    _commits_fail(sqlite3.SQLITE_IOERR_WRITE, "disk I/O error", MIDDLE)


def sync_fails() -> None:
    """Let fsync fail in the middle of a run."""
    _commits_fail(sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error", MIDDLE)


def unlink_fails() -> None:
    """Let the journal stay in the middle of a run."""
    _commits_fail(sqlite3.SQLITE_IOERR_DELETE, "disk I/O error", MIDDLE)


def database_moves() -> None:
    """Take the database away in the middle of a run."""
    _commits_fail(sqlite3.SQLITE_READONLY_DBMOVED, "attempt to write a readonly database", MIDDLE)


def close_fails() -> None:
    """Let the disk fail as the database is closed."""

    async def close(self: Store) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(self.path))

    Store.close = close  # type: ignore[method-assign]  # the fault itself


def no_patience() -> None:
    """Wait for a busy database a moment only."""
    for module, name in (
        ("phoenix_tui.wiring.installation", "PATIENCE"),
        ("phoenix_tui.wiring.installation", "BUSY_SECONDS"),
    ):
        setattr(import_module(module), name, 0.2)


MIDDLE = 2
"""Commits that a run makes before its first reply is stored: the conversation, and the message of the user."""
