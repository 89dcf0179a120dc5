"""Looks for changed files without a thread and without a wake-up of its own kind: one timer, a few `stat` calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias

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

    def changed(self) -> list[Path]:
        """Files that were written, made or removed since."""
        before, self._stamps = self._stamps, self._look()
        return [path for path in {**before, **self._stamps} if before.get(path) != self._stamps.get(path)]


def stamp(path: Path) -> FileStamp:
    """Fingerprint of a file's version; None for a missing file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path costs three times as much, once a second
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
