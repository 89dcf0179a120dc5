"""Private folders of sandboxed commands: temporary files per conversation, and the layers over caches."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

PREFIX = "phoenix-sandbox-"
LOCK = "lock"
TEMPORARY_MODE = 0o1777
LARGEST = 4 * 1024**3
"""Bytes that the folders of one conversation keep from one command to the next."""
MEASURED_EVERY = 30.0
"""Seconds between two looks at the size."""
MOST_ENTRIES = 200_000
"""Files counted for that; a folder with more is taken for too large."""


class Lease(Struct, frozen=True):
    """Folders lent to one command."""

    owner: str
    slot: int
    temporary: Path
    layers: Path
    """Folder for the layers over caches, exclusive to this lease, since overlayfs cannot share one."""
    empty: Path
    """An empty file, to cover others with."""
    closed: Path
    """A socket without rights, to cover files of the workspace with: no file, so that walks pass it over."""


class Scratch:
    """Makes them with first use, removes them with their conversation, and those of a killed Phoenix. Blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.base: Path | None = None
        self._descriptor = -1
        self._leased: set[tuple[str, int]] = set()
        self._ended: set[str] = set()
        self._numbers = itertools.count(1)
        self._measured: dict[str, float] = {}

    def lease(self, owner: str) -> Lease:
        """Lend the folders of the conversation `owner` to a command; an empty name gives it separate folders.

        Raises:
            OSError: there is no place for them.
        """
        with self._lock:
            base = self._open()
            name = _folder_name(owner) if owner else f"command-{next(self._numbers)}"
            slot = next(number for number in range(len(self._leased) + 1) if (name, number) not in self._leased)
            self._ended.discard(name)
            temporary = base / name / "tmp"
            layers = base / name / f"layers-{slot}"
            for folder in (temporary, layers):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # below `base`, which is closed to others
            temporary.chmod(TEMPORARY_MODE)
            self._leased.add((name, slot))
            if not owner:
                self._ended.add(name)
            return Lease(name, slot, temporary, layers, base / "empty", base / "closed")

    def give_back(self, lease: Lease) -> None:
        """Take the folders back; they stay for the next command of their conversation while they are small."""
        with self._lock:
            self._leased.discard((lease.owner, lease.slot))
            if self.base is None or any(owner == lease.owner for owner, _ in self._leased):
                return
            folder = self.base / lease.owner
            if lease.owner in self._ended or self._is_too_large(folder):
                self._ended.discard(lease.owner)
                self._measured.pop(lease.owner, None)
                remove(folder)

    def forget(self, owner: str) -> None:
        """Remove the folders of a closing conversation, now or with its last command."""
        with self._lock:
            name = _folder_name(owner)
            if self.base is None:
                return
            if any(leased == name for leased, _ in self._leased):
                self._ended.add(name)
            else:
                remove(self.base / name)

    def close(self) -> None:
        """Remove everything."""
        with self._lock:
            if self.base is not None:
                remove(self.base)
                os.close(self._descriptor)
                self.base = None

    def _open(self) -> Path:
        if self.base is None:
            sweep(Path(tempfile.gettempdir()))
            base = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
            self._descriptor = os.open(base / "new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (base / "new").rename(base / LOCK)  # another Phoenix cannot sweep it before it is held
            (base / "empty").touch(mode=0o444)
            with contextlib.suppress(OSError):  # not on this file system
                os.mknod(base / "closed", stat.S_IFSOCK)
            (base / "closed").touch(mode=0)
            self.base = base
        return self.base

    def _is_too_large(self, folder: Path) -> bool:
        now = time.monotonic()
        if now - self._measured.get(folder.name, -MEASURED_EVERY) < MEASURED_EVERY:
            return False
        self._measured[folder.name] = now
        return is_too_large(folder)


def scratch_folders() -> tuple[Path, ...]:
    """The folders of this and of every other Phoenix, resolved."""
    return tuple(sorted(Path(tempfile.gettempdir()).resolve().glob(f"{PREFIX}*")))


def sweep(folder: Path) -> None:
    """Remove the folders of every Phoenix of this user that no longer runs."""
    for base in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = base.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            descriptor = os.open(base / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(base)
            finally:
                os.close(descriptor)


def remove(folder: Path) -> None:
    """Remove a tree that a command made, folders that it closed to everybody included."""
    shutil.rmtree(folder, onerror=_open_and_retry)


def _open_and_retry(function: Callable[..., object], path: str, _error: object) -> None:
    with contextlib.suppress(OSError):
        Path(path).parent.chmod(0o700)
        if not Path(path).is_symlink():
            Path(path).chmod(0o700)
        if function in {os.unlink, os.rmdir}:
            function(path)
        elif Path(path).is_dir():
            shutil.rmtree(path, ignore_errors=True)


def is_too_large(folder: Path) -> bool:
    """True for a tree of more than `LARGEST` bytes or `MOST_ENTRIES` files."""
    total = count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(place) / name).lstat().st_blocks * 512
            count += 1
        if total > LARGEST or count > MOST_ENTRIES:
            return True
    return False


def _folder_name(owner: str) -> str:
    return f"conversation-{hashlib.sha256(owner.encode('utf-8', 'replace')).hexdigest()[:24]}"
