"""Files that several processes read and change: a lock for changes, and a timer that notices them."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from tools.files.own_files import make_folder, open_file

PATIENCE: Final = 5.0
"""Seconds to wait for other processes: each holds the lock for one read and one write."""
STEP: Final = 0.01
LOCKED: Final = "another Phoenix keeps it locked"


@contextmanager
def lock_file(path: Path) -> Generator[None]:
    """Be the only process that changes `path`, by a lock on `.NAME.lock` beside it; readers need none.

    The lock file stays: a process that waits for it must not get the lock of a file that is gone. The lock ends with
    its process.

    Raises:
        OSError: the folder cannot be written, or another process keeps the lock.
    """
    make_folder(path.parent)
    descriptor = open_file(path.with_name(f".{path.name}.lock"), os.O_RDWR)
    try:
        _wait(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(errno.EAGAIN, LOCKED, str(path)) from None
            time.sleep(STEP)
        else:
            return


LOOK_EVERY: Final = 1.0
"""Seconds between two looks; a look costs about 20 us for five files."""
FileStamp: TypeAlias = tuple[int, int] | None
"""Time and size, None while there is no such file."""


class LiveFiles:
    """Says which of some files changed since the last look."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._stamps = self._look()

    def _look(self) -> dict[Path, FileStamp]:
        return {path: stamp(path) for path in self._files()}

    def find_changed(self) -> list[Path]:
        """Files that were written, made or removed since."""
        before, self._stamps = self._stamps, self._look()
        return [path for path in {**before, **self._stamps} if before.get(path) != self._stamps.get(path)]


def stamp(path: Path) -> FileStamp:
    """Fingerprint of a file's version; None for a missing file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
