"""The state of a database's files, told apart without reading them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, TypeAlias

FileStamp: TypeAlias = tuple[tuple[int, int, int], ...]
"""Inode, size and time of change in nanoseconds of each file."""
FINE: Final = 1_000_000
"""A time of change that is no multiple of this many nanoseconds comes from a file system that stores them all."""
TOO_NEW_FINE: Final = 20_000_000
"""Nanoseconds: twice the longest tick of a kernel's clock (100 a second), by which a time of change may be late."""
TOO_NEW: Final = 2_000_000_000
"""Nanoseconds for a file system that stores coarse times: FAT counts by two seconds."""


def file_stamp(path: Path) -> FileStamp | None:
    """Fingerprint of a database and its log, about 3 µs; another one after each commit of any process.

    None where a later change might leave the same: a file is missing, or changed just now.
    """
    found: list[tuple[int, int, int]] = []
    for name in (path, f"{path}-wal"):
        try:
            one = os.stat(name)  # noqa: PTH116 - a Path costs three times as much, between Enter and the request
        except OSError:
            continue
        found.append((one.st_ino, one.st_size, one.st_mtime_ns))
    newest = max((changed for _, _, changed in found), default=None)
    if newest is None:
        return None
    wait = TOO_NEW_FINE if newest % FINE else TOO_NEW
    return tuple(found) if time.time_ns() - newest >= wait else None
