"""Versions of all paths that a search depends on: while they are the same, so is what it would find."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

SETTLED: Final = 50_000_000
"""Nanoseconds after which a further change of a file has another time, also where the kernel's clock ticks coarsely
(docs/decisions/rewind.md)."""
_Version: TypeAlias = tuple[int, int, int, int, int, int] | None


class Fingerprint(Struct, eq=False):
    """Paths of one search, files that were not there included; a check costs 1.5 us a path.

    A path is noted before it is read: a change meanwhile then shows. Links are followed; one that leads elsewhere
    changes the folder that it is in.
    """

    _seen: dict[str, _Version] = field(default_factory=dict[str, _Version])
    _begun: int = field(default_factory=time.time_ns)
    _newest: int = 0

    def note(self, path: Path) -> None:
        """Remember the version of a file or folder, or that there is none."""
        name = str(path)
        if name not in self._seen:
            self._seen[name] = version = _version(name)
            # A program can set back every time but this one.
            self._newest = max(self._newest, version[5] if version is not None else 0)

    def holds(self) -> bool:
        """True when nothing has changed; never where something had changed just before the search."""
        if self._newest > self._begun - SETTLED:
            return False
        return all(_version(name) == version for name, version in self._seen.items())


def _version(name: str) -> _Version:
    try:
        found = os.stat(name)  # noqa: PTH116 - a Path costs three times as much, for every file of a project
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
