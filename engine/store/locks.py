"""The lock file of a process: held for life, freed by the kernel on any death (FAULTS 75)."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from engine.store.paths import make_file


class InstanceLock:
    """An flock on `locks/<id>.lock`. Closed on exec, so no child process keeps it alive."""

    def __init__(self, folder: Path, instance_id: str) -> None:
        self._path = _path(folder, instance_id)
        self._descriptor = make_file(self._path)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Give it up; the file goes too."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_held(folder: Path, instance_id: str) -> bool:
    """Whether the process of this id lives. Shared, so two who ask at once do not see each other."""
    try:
        descriptor = os.open(_path(folder, instance_id), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def forget(folder: Path, instance_id: str) -> None:
    """Remove the lock file of a dead process."""
    _path(folder, instance_id).unlink(missing_ok=True)


def _path(folder: Path, instance_id: str) -> Path:
    return folder / f"{instance_id}.lock"
