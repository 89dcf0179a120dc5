"""Empty files and folders that stand where something must not be created, shared by commands that run together."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path


class Placeholders:
    """Counts who needs each one and removes it with the last. Called from threads."""

    def __init__(self) -> None:
        self._claims: Counter[Path] = Counter()
        self._lock = threading.Lock()

    def claim(self, path: Path, *, is_file: bool) -> Path | None:
        """What stands for the missing `path`: its first missing part, made empty.

        None when it cannot be made here, and then not by a command either.
        """
        with self._lock:
            shared = next((part for part in (path, *path.parents) if part in self._claims), None)
            made = shared or _make(path, is_file=is_file)
            if made is not None:
                self._claims[made] += 1
            return made

    def is_claimed(self, path: Path) -> bool:
        """Whether `path` exists only because it was made here."""
        return path in self._claims

    def release(self, claimed: Iterable[Path]) -> None:
        """Give up one claim on each path."""
        with self._lock:
            for path in claimed:
                self._claims[path] -= 1
                if self._claims[path] <= 0:
                    del self._claims[path]
                    _remove(path)


def _make(path: Path, *, is_file: bool) -> Path | None:
    missing = path
    while not missing.parent.exists():
        missing = missing.parent
    try:
        if is_file and missing == path:
            missing.touch(mode=0o600, exist_ok=False)
        else:
            missing.mkdir(mode=0o700)
    except OSError:
        return None
    return missing


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir():
            path.rmdir()
        elif path.stat().st_size == 0:
            path.unlink()
