"""Placeholders for paths that must not be created, shared by commands that run together.

A folder's placeholder is an empty folder. A file's is a socket without a listener: programs cannot open it, and git
ignores both.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tools.process.claims import Journal

FOLDER_MODE = 0o500
"""Mode of a placeholder folder, and the mark of one that a killed Phoenix left behind."""
FILE_MODE = 0o400
CONTENTS = (b"", b".\n", b"../..\n")


class Placeholders:
    """Counts the users of each placeholder and removes it with the last. Called from threads.

    `journals` is a folder that every Phoenix of this user shares; None without sharing.
    """

    def __init__(self, journals: Path | None = None) -> None:
        self._claims: Counter[Path] = Counter()
        self._journal = Journal(journals)
        self._lock = threading.Lock()

    def claim(self, path: Path, *, is_file: bool, content: str | None = None) -> Path | None:
        """Create an empty entry at the first missing part of `path` and return that part.

        None when it cannot be made here, and then not by a command either.
        """
        with self._lock:
            shared = next((part for part in (path, *path.parents) if part in self._claims), None)
            if shared is not None:
                self._claims[shared] += 1
                return shared
            with self._journal.alone():
                missing = _first_missing(path)
                self._journal.add(missing)
                is_whole = missing == path
                stands = is_left_over(missing) or _make(missing, is_file=is_file and is_whole, content=content)
                if not stands:
                    self._journal.drop(missing, last=not self._claims)
                    return None
                self._claims[missing] += 1
                return missing

    def is_claimed(self, path: Path) -> bool:
        """True where `path` exists only because it was made here, or by a Phoenix that was killed."""
        return path in self._claims or is_left_over(path)

    def release(self, claimed: Iterable[Path]) -> None:
        """Give up one claim on each path."""
        with self._lock:
            over: list[Path] = []
            for path in claimed:
                self._claims[path] -= 1
                if self._claims[path] <= 0:
                    del self._claims[path]
                    over.append(path)
            with self._journal.alone() if over else contextlib.nullcontext():
                for path in over:
                    self._journal.drop(path, last=not self._claims)
                    if not self._journal.is_needed_elsewhere(path):
                        _remove(path)

    def clear(self) -> None:
        """Remove the placeholders of killed Phoenixes in all folders."""
        with self._lock, self._journal.alone():
            self._journal.clear(_remove)

    def close(self) -> None:
        """Close the journal."""
        with self._lock:
            self._journal.close()


def is_left_over(path: Path) -> bool:
    """True for an entry that looks like a placeholder."""
    try:
        status = path.lstat()
    except OSError:
        return False
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.getuid():
        return False
    if stat.S_ISDIR(status.st_mode):
        return mode == FOLDER_MODE and status.st_nlink <= 2 and not _entries(path)
    if mode != FILE_MODE:
        return False
    return stat.S_ISSOCK(status.st_mode) or (stat.S_ISREG(status.st_mode) and _content(path) in CONTENTS)


def _content(path: Path) -> bytes | None:
    """The first bytes of a small file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, 64)
    finally:
        os.close(descriptor)


def _entries(path: Path) -> list[str]:
    try:
        return os.listdir(path)  # noqa: PTH208 - names are enough
    except OSError:
        return ["?"]


def _first_missing(path: Path) -> Path:
    """The outermost part of a path that does not exist; the path itself where it does."""
    missing = path
    while not _stands(missing.parent):
        missing = missing.parent
    return missing


def _make(path: Path, *, is_file: bool, content: str | None) -> bool:
    try:
        if not is_file:
            path.mkdir(mode=FOLDER_MODE)
        elif content is None:
            _make_socket(path)
        else:
            _write(path, content)
    except OSError:
        return False
    return True


def _make_socket(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFSOCK | FILE_MODE)
    except FileExistsError:
        raise
    except OSError:  # not on this file system
        _write(path, "")


def _write(path: Path, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        os.write(descriptor, content.encode())
    finally:
        os.close(descriptor)


def _stands(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if not is_left_over(path):
            return
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
