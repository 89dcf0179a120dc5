"""The lock file of a process: held for life, freed by the kernel on any death (FAULTS 75)."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from tools.files.own_files import new_file, open_own

_ID: Final = re.compile(r"[0-9a-f]{32}")


class InstanceLock:
    """An flock on `locks/<id>.lock`. Closed on exec, so no child process keeps it alive."""

    def __init__(self, folder: Path, instance_id: str) -> None:
        self._path = _path(folder, instance_id)
        self._descriptor = new_file(self._path)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Give it up; the file goes too."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def is_held(folder: Path, instance_id: str) -> bool:
    """True when the process of this id is alive. Shared, so that simultaneous tests do not see each other."""
    try:
        descriptor = open_own(_path(folder, instance_id))
    except OSError:
        return False  # gone, or no lock of a Phoenix
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def forget(folder: Path, instance_id: str) -> None:
    """Remove the lock file of a dead process."""
    with suppress(OSError):  # a folder at this path stays
        _path(folder, instance_id).unlink()


def _path(folder: Path, instance_id: str) -> Path:
    """The file of an id; raises OSError for an invalid one, since rows may have been written by other programs."""
    if _ID.fullmatch(instance_id) is None:
        raise OSError(errno.EINVAL, "no id of a process")
    return folder / f"{instance_id}.lock"
