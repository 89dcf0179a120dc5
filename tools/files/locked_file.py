"""Files that several processes write: one at a time, each record whole, set aside at a size without losing any.

The lock is on the file itself. A holder may rename it, so each waiter looks again whether its file still has the name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.files.own_files import open_file

LOCK_SECONDS: Final = 2.0
"""Longest wait for other processes; a stopped one keeps its lock."""
LOCK_STEP: Final = 0.01
BLOCK: Final = 64 * 1024
"""Bytes that are read at once to find the end of the last whole line."""


class FileLocked(OSError):
    """Raised where another process keeps a file locked, or keeps replacing it."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EAGAIN, "another process keeps it locked", str(path))


@contextmanager
def hold_locked_file(path: Path, how: int) -> Generator[int]:
    """Open and lock the private file that has this name, also where another one has just taken its place.

    `how` are flags as for `open_file`. A lock ends with its process.

    Raises:
        FileLocked: it is still locked after `LOCK_SECONDS`.
        OSError: it cannot be opened or locked.
    """
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        descriptor = open_file(path, how)
        try:
            _lock(descriptor, path, deadline)
            if _is_at(descriptor, path):
                yield descriptor
                return
        finally:
            os.close(descriptor)
        if time.monotonic() > deadline:
            raise FileLocked(path)


def append_record(path: Path, content: bytes, most: int) -> None:
    """Append a line, all of it or nothing; what a writer that was killed left of its own line is removed.

    A file above `most` bytes becomes `NAME.1` first, in the place of an older one.

    Raises:
        FileLocked: it is still locked after `LOCK_SECONDS`.
        OSError: it cannot be written or set aside.
    """
    while True:
        with hold_locked_file(path, os.O_RDWR | os.O_APPEND) as descriptor:
            size = os.fstat(descriptor).st_size
            if size <= most:
                _write_whole(descriptor, content, _end_of_lines(descriptor, size))
                return
            path.replace(path.with_name(f"{path.name}.1"))


def replace_content(path: Path, content: bytes) -> None:
    """Put `content` in the place of the file's own; nothing where not all of it can be written. Raises as above."""
    with hold_locked_file(path, os.O_WRONLY) as descriptor:
        _write_whole(descriptor, content, 0)


def _write_whole(descriptor: int, content: bytes, start: int) -> None:
    os.ftruncate(descriptor, start)
    written = 0
    try:
        while written < len(content):
            written += os.write(descriptor, content[written:])
    except OSError:
        os.ftruncate(descriptor, start)
        raise


def _end_of_lines(descriptor: int, size: int) -> int:
    """The place behind the last line end."""
    if not size or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    while size:
        start = max(size - BLOCK, 0)
        found = os.pread(descriptor, size - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0


def _lock(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FileLocked(path) from None
            time.sleep(LOCK_STEP)
        else:
            return


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
