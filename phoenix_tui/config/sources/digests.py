"""Versions of paths and digests of files, kept while a file is the same."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from tools.files.own_files import open_own

SETTLED: Final = 50_000_000
"""Nanoseconds after which a further change of a file has another time, also where the kernel's clock ticks coarsely
(docs/decisions/rewind.md)."""
_PathVersion: TypeAlias = tuple[int, int, int, int, int, int] | None


class Fingerprint(Struct, eq=False):
    """Paths of one search, files that were not there included; a check costs 1.5 us a path.

    A path is noted before it is read: a change meanwhile then shows. Links are followed; one that leads elsewhere
    changes the folder that it is in.
    """

    _seen: dict[str, _PathVersion] = field(default_factory=dict[str, _PathVersion])
    _begun: int = field(default_factory=time.time_ns)
    _newest: int = 0

    def note(self, path: Path) -> None:
        """Remember the version of a file or folder, or that there is none."""
        name = str(path)
        if name not in self._seen:
            self._seen[name] = version = _read_version(name)
            # A program can set back every time but this one.
            self._newest = max(self._newest, version[5] if version is not None else 0)

    def holds(self) -> bool:
        """True when nothing has changed; never where something had changed just before the search."""
        if self._newest > self._begun - SETTLED:
            return False
        return all(_read_version(name) == version for name, version in self._seen.items())


def _read_version(name: str) -> _PathVersion:
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


PIECE: Final = 256 * 1024
"""Bytes read at a time."""
MOST_KEPT: Final = 20_000
"""Digests in memory, about 8 MB."""


class _Version(Struct, frozen=True):
    """Identity of a version of a file; a program can set back the modification time, not the change."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int


class Digests(Struct, eq=False):
    """Digests by path; may be used by several threads."""

    _kept: dict[Path, tuple[_Version, str]] = field(default_factory=dict[Path, tuple[_Version, str]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def digest(self, path: Path, most: int) -> tuple[str, int]:
        """SHA-256 of a regular file of at most `most` bytes, and its size.

        Raises:
            OSError: it is gone, larger, a link or no regular file.
        """
        descriptor = open_own(path)
        try:
            version = _version(os.fstat(descriptor))
            with self._lock:
                kept = self._kept.get(path)
            if kept is not None and kept[0] == version:
                return _within(kept[1], version.size, most)
            found = _read(descriptor, _within("", version.size, most)[1])
        finally:
            os.close(descriptor)
        if version.changed <= time.time_ns() - SETTLED:  # a second change could have the same time
            with self._lock:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[path] = (version, found)
        return found, version.size


def digest_of(content: bytes) -> str:
    """SHA-256 of a content."""
    import hashlib  # noqa: PLC0415 - OpenSSL behind it takes 2 ms, and most folders have no such file

    return hashlib.sha256(content).hexdigest()


def _within(digest: str, size: int, most: int) -> tuple[str, int]:
    if size > most:
        raise OSError("it is larger than what is left of the limit")
    return digest, size


def _read(descriptor: int, size: int) -> str:
    """Digest of the first `size` bytes and one more: a file that grew meanwhile has no digest of its beginning."""
    import hashlib  # noqa: PLC0415 - as above

    total, left = hashlib.sha256(), size + 1
    while left > 0 and (piece := os.read(descriptor, min(PIECE, left))):
        total.update(piece)
        left -= len(piece)
    return total.hexdigest()


def _version(status: os.stat_result) -> _Version:
    return _Version(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
