"""Ownership of conversations by processes (SPEC DOM-05), and their lock files, freed by the kernel (FAULTS 75)."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from engine.ports import NoConversation, OwnedElsewhere
from engine.store.connection import TableGroup, Transactions
from tools.files.own_files import new_file, open_own

_ID: Final = re.compile(r"[0-9a-f]{32}")


class InstanceLock:
    """An flock on `locks/<id>.lock`. Closed on exec, so no child process keeps it alive."""

    def __init__(self, folder: Path, instance_id: str) -> None:
        self._path = _lock_path(folder, instance_id)
        self._descriptor = new_file(self._path)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Give it up; the file goes too."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_lock_held(folder: Path, instance_id: str) -> bool:
    """True when the process of this id is alive. Shared, so that simultaneous tests do not see each other."""
    try:
        descriptor = open_own(_lock_path(folder, instance_id))
    except OSError:
        return False  # gone, or no lock of a Phoenix
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove_lock(folder: Path, instance_id: str) -> None:
    """Remove the lock file of a dead process."""
    with suppress(OSError):  # a folder at this path stays
        _lock_path(folder, instance_id).unlink()


def _lock_path(folder: Path, instance_id: str) -> Path:
    """The file of an id; raises OSError for an invalid one, since rows may have been written by other programs."""
    if _ID.fullmatch(instance_id) is None:
        raise OSError(errno.EINVAL, "no id of a process")
    return folder / f"{instance_id}.lock"


_OWNERS = """SELECT c.owner_instance, (SELECT owner_instance FROM conversations WHERE id = c.parent_id) AS above
    FROM conversations AS c WHERE c.id = ? AND c.partial IS NULL"""
"""A sub-agent belongs to the owner of its parent, also while it is closed there."""


class Instance:
    """Identity of this process among those that share the database. It registers with its first ownership."""

    def __init__(self, locks: Path) -> None:
        self.id = uuid4().hex
        self._locks = locks
        self._lock: InstanceLock | None = None
        self._boot_id = _boot_id()

    def claim(self, connection: sqlite3.Connection, conversation_id: str, at: float) -> None:
        """Make this process the owner; the caller has checked that there is no living one."""
        self.register(connection, at)
        connection.execute("UPDATE conversations SET owner_instance = ? WHERE id = ?", (self.id, conversation_id))

    def register(self, connection: sqlite3.Connection, at: float) -> None:
        """Put this process on the list of those that live."""
        if self._lock is None:
            self._lock = InstanceLock(self._locks, self.id)
        connection.execute(
            "INSERT OR IGNORE INTO instances (id, pid, boot_id, started_at) VALUES (?, ?, ?, ?)",
            (self.id, os.getpid(), self._boot_id, at),
        )

    def living_pid(self, connection: sqlite3.Connection, instance_id: str | None) -> int | None:
        """The process behind an `owner_instance`, None when there is none or it is dead."""
        if instance_id is None:
            return None
        row = connection.execute("SELECT pid, boot_id FROM instances WHERE id = ?", (instance_id,)).fetchone()
        if row is None or (instance_id != self.id and not self._lives(instance_id, row["boot_id"])):
            return None
        return int(row["pid"])

    def owns(self, connection: sqlite3.Connection, conversation_id: str) -> bool:
        """True when a conversation belongs to this process; False when to no living one.

        Raises:
            OwnedElsewhere: it belongs to another living process.
            NoConversation: there is no such conversation.
        """
        row = connection.execute(_OWNERS, (conversation_id,)).fetchone()
        if row is None:
            raise NoConversation(conversation_id)
        if row["owner_instance"] == self.id:
            return True
        others = [owner for owner in (row["owner_instance"], row["above"]) if owner != self.id]
        for owner in others:
            if (pid := self.living_pid(connection, owner)) is not None:
                raise OwnedElsewhere(conversation_id, pid)
        return False

    def release(self, connection: sqlite3.Connection, conversation_id: str) -> None:
        """Give one conversation up."""
        connection.execute(
            "UPDATE conversations SET owner_instance = NULL WHERE id = ? AND owner_instance = ?",
            (conversation_id, self.id),
        )

    def dead(self, connection: sqlite3.Connection) -> list[str]:
        """Registered processes that are gone."""
        rows = connection.execute("SELECT id, boot_id FROM instances WHERE id <> ?", (self.id,)).fetchall()
        return [row["id"] for row in rows if not self._lives(row["id"], row["boot_id"])]

    def bury(self, connection: sqlite3.Connection, instance_id: str) -> None:
        """Forget a dead process; its conversations lose their owner."""
        connection.execute("DELETE FROM instances WHERE id = ?", (instance_id,))
        remove_lock(self._locks, instance_id)

    def leave(self, connection: sqlite3.Connection) -> None:
        """Take this process off the list: the mark of a clean exit."""
        connection.execute("DELETE FROM instances WHERE id = ?", (self.id,))

    @property
    def registered(self) -> bool:
        """True while it is on the list."""
        return self._lock is not None

    def unlock(self) -> None:
        """Drop the lock; to everyone else this process is gone."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _lives(self, instance_id: str, boot_id: str) -> bool:
        return boot_id == self._boot_id and is_lock_held(self._locks, instance_id)


def _boot_id() -> str:
    """Id that changes with every start of the machine; empty where the system has none."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text("ascii").strip() if path.exists() else ""


class OwnedTables(TableGroup):
    """Tables of conversations that have an owner."""

    def __init__(self, transactions: Transactions, instance: Instance) -> None:
        super().__init__(transactions)
        self._instance = instance
