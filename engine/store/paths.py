"""Where a store keeps its files; every file it makes is 0600, every folder 0700, under any umask (FAULTS 69)."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct


class StorePaths(Struct, frozen=True):
    """The database file and the folders beside it; all are made when missing."""

    database: Path
    attachments: Path
    locks: Path
    backups: Path

    @classmethod
    def under(cls, folder: Path) -> StorePaths:
        """All of it in one folder."""
        return cls(folder / "phoenix.db", folder / "attachments", folder / "locks", folder / "backups")


def make_folder(folder: Path) -> None:
    """Make `folder` and its missing parents, each private to the user."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> int:
    """A new private file, open for writing; raises FileExistsError where one is."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, content: bytes) -> None:
    """Write a whole private file: it is there with all of `content`, or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    descriptor = make_file(part)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)
