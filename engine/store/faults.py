"""Faults of a database file, each as one sentence for the user that names the fix."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from engine.codec import CodecError
from engine.ports import DatabaseBusy, StorageError


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
