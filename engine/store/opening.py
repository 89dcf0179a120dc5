"""Opens the database file: makes it whole or not at all, checks it, backs it up and brings it up to date."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from msgspec import Struct

from engine.diagnostics import Diagnostics
from engine.store.connection import DamagedDatabase, NewerDatabase, fresh_beside
from engine.store.migrations import APPLICATION_ID, BASELINE, MIGRATIONS, VERSION, Migration, migrate, version_of
from engine.store.ownership import is_lock_held
from tools.files.location import spill_name
from tools.files.own_files import close_to_others, make_folder, new_file, sync_file, sync_folder


class Remains(Struct, frozen=True):
    """Folders of such files; None where there is none. Removing blocks, and files that cannot be removed stay."""

    outputs: Path | None = None
    """Whole outputs of commands, by conversation and call."""
    logs: Path | None = None
    """Requests and replies kept for debugging, of all conversations together: they go whole."""

    def remove(self, conversation_id: str, call_ids: Iterable[str]) -> None:
        """Remove the files of these calls of a conversation."""
        if self.outputs is not None:
            names = {spill_name(conversation_id, call_id) for call_id in call_ids}
            for path in (*self.outputs.glob("output-*"), *self.outputs.glob("*/output-*")) if names else ():
                if path.name in names:
                    with suppress(OSError):
                        path.unlink()
        if self.logs is not None:
            Diagnostics(self.logs).forget()


class StorePaths(Struct, frozen=True):
    """The database file and the folders beside it, made when missing, and folders whose files go with conversations."""

    database: Path
    attachments: Path
    locks: Path
    backups: Path
    remains: Remains = Remains()

    @classmethod
    def under(cls, folder: Path) -> StorePaths:
        """All of it in one folder."""
        return cls(folder / "phoenix.db", folder / "attachments", folder / "locks", folder / "backups")


SAFE_WAL = (3, 51, 3)
"""The first SQLite whose WAL survives several processes (FAULTS 3.3)."""
BUSY_SECONDS = 30.0
"""Seconds that a statement waits for another process before it fails."""
BUSY_AT_OPENING = 1.0
"""Seconds of such waits while opening: the waiting thread cannot be stopped, and the user may want to leave."""
PAGE_CACHE_KIB = 8 * 1024
"""Page cache of a reading connection: searches read the same pages again and again."""
WRITER_CACHE_KIB = 1024
"""A move touches a few dozen pages; more would fill with pages of old turns, 7 kB a turn."""
MOST_IN_MEMORY = 512 * 1024 * 1024
"""Bytes of a database that is shown from memory because it cannot be written."""


def journal_mode(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> str:
    """WAL where SQLite's is safe with several processes, else the rollback journal."""
    return "WAL" if version >= SAFE_WAL else "DELETE"


def open_for_writing(paths: StorePaths, migrations: Sequence[Migration] = MIGRATIONS) -> sqlite3.Connection:
    """The connection that writes, on a whole database of our version.

    Raises:
        DamagedDatabase, NewerDatabase: the file was not touched.
        OSError, sqlite3.Error: it cannot be made or opened.
    """
    for folder in (paths.database.parent, paths.attachments, paths.locks, paths.backups):
        make_folder(folder)
    if not paths.database.exists():
        _make_database(paths.database, migrations)
    check_file(paths.database)
    path = paths.database
    for needed in (path, path.parent):
        if not os.access(needed, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(needed))
    close_to_others(paths.database)  # a copied database; its journals get its mode
    connection = connect(str(paths.database), BUSY_AT_OPENING)
    try:
        connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
        known = BASELINE + len(migrations)
        check_kind(connection, paths.database, known)
        rows = connection.execute("SELECT id FROM instances").fetchall()
        if any(not is_lock_held(paths.locks, row["id"]) for row in rows):
            check_pages(connection, paths.database)
        found = version_of(connection)
        if found < BASELINE + len(migrations):
            _back_up(connection, paths.backups / f"{paths.database.stem}-v{found}-{uuid4().hex[:8]}.db")
            migrate(connection, migrations)
        try:
            connection.execute(f"PRAGMA journal_mode = {journal_mode()}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(path: Path, patience: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open a connection that writes nothing but the repair after a killed writer, where it may."""
    mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    connection = connect(f"{path.as_uri()}?mode={mode}", patience)
    connection.execute("PRAGMA query_only = ON")
    return connection


def open_in_memory() -> sqlite3.Connection:
    """A whole database that is gone when closed."""
    connection = connect(":memory:")
    migrate(connection)
    return connection


def open_copy_in_memory(path: Path) -> sqlite3.Connection:
    """Copy a file that cannot be written into memory, in our version; without owners.

    Raises:
        DamagedDatabase, NewerDatabase: it holds nothing that can be shown.
        OSError, sqlite3.Error: it is too large, or cannot be read as it is.
    """
    check_file(path)
    if path.stat().st_size > MOST_IN_MEMORY:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    memory = connect(":memory:")
    try:
        source = connect(f"{path.as_uri()}?mode=ro{_immutable(path)}")
        try:
            check_kind(source, path)
            source.backup(memory)
        finally:
            source.close()
        check_pages(memory, path)
        migrate(memory)
        memory.execute("DELETE FROM instances")
    except BaseException:
        memory.close()
        raise
    return memory


def _immutable(path: Path) -> str:
    """Option for reading a file without a journal, which needs none of the files that a reader of a WAL creates."""
    journals = (path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-journal"))
    return "" if any(one.exists() and one.stat().st_size for one in journals) else "&immutable=1"


def connect(target: str, patience: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection as every one of ours is set up: transactions are explicit, rows have names."""
    connection = sqlite3.connect(
        target, timeout=patience, isolation_level=None, uri=target.startswith("file:"), cached_statements=256
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA secure_delete = ON")  # some systems build it in, others do not
    return connection


def _make_database(path: Path, migrations: Sequence[Migration]) -> None:
    """Build it under another name and give it its own when it is whole; another process may be first."""
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    os.close(new_file(part))
    try:
        connection = connect(str(part))
        try:
            connection.execute("PRAGMA journal_mode = MEMORY")  # an incomplete part is ignored,
            connection.execute("PRAGMA synchronous = OFF")  # so it reaches the disk once, below
            migrate(connection, migrations)
        finally:
            connection.close()
        sync_file(part)
        try:
            path.hardlink_to(part)
        except FileExistsError:
            return
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def check_file(path: Path) -> None:
    """Refuse what SQLite cannot read as a file, or would fill as a new one. Raises DamagedDatabase, OSError."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        problem = "is a folder" if stat.S_ISDIR(found.st_mode) else "is no file"
        raise DamagedDatabase(path, fresh_beside(path), problem)
    if not found.st_size:
        raise DamagedDatabase(path, fresh_beside(path), "is empty")


def check_kind(connection: sqlite3.Connection, path: Path, known: int = VERSION) -> None:
    """Refuse files of other programs, and versions that cannot be read. Raises DamagedDatabase, NewerDatabase."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise DamagedDatabase(path, fresh_beside(path), "is not a database of Phoenix")
    found = version_of(connection)
    if found > known:
        raise NewerDatabase(path, found, known)
    if found < BASELINE:
        raise DamagedDatabase(path, fresh_beside(path), f"has format {found}, from before the first release")


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Read every page. Raises DamagedDatabase."""
    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise DamagedDatabase(path, fresh_beside(path), "is damaged")


def _back_up(connection: sqlite3.Connection, path: Path) -> None:
    """A copy of the file as it is, before a migration changes it."""
    os.close(new_file(path))
    copy = sqlite3.connect(path)
    try:
        connection.backup(copy)
    finally:
        copy.close()
