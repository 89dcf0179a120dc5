"""A lock on a file that several processes read, change and replace."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.files.own_files import make_folder, open_file

PATIENCE: Final = 5.0
"""Seconds to wait for other processes: each holds the lock for one read and one write."""
STEP: Final = 0.01
LOCKED: Final = "another Phoenix keeps it locked"


@contextmanager
def locked(path: Path) -> Generator[None]:
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
