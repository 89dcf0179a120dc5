"""Private folders of sandboxed commands: temporary files per conversation, and layers over caches.

A sandboxed command writes to a copy of its own of the caches of package managers and compilers.
"""

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
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

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


BELOW_HOME: Final[Mapping[str, tuple[str, ...]]] = {
    ".cache": (),
    ".npm": ("npm", "npx"),
    ".yarn": ("yarn",),
    ".bun/install/cache": ("bun", "bunx"),
    ".cargo/registry": ("cargo",),
    ".cargo/git": ("cargo",),
    "go/pkg": ("go",),
    ".gradle": ("gradle",),
    ".m2": ("mvn",),
    ".ivy2": ("sbt", "ivy"),
    ".sbt": ("sbt",),
    ".nuget": ("dotnet", "nuget"),
    ".local/share/pnpm": ("pnpm",),
    ".local/share/uv": ("uv", "uvx"),
    ".pnpm-store": ("pnpm",),
    ".bundle/cache": ("bundle",),
    ".mix": ("mix",),
    ".hex": ("mix",),
    ".deno": ("deno",),
    ".julia": ("julia",),
    ".stack": ("stack",),
    ".cabal/packages": ("cabal",),
    ".ccache": ("ccache",),
    ".electron-gyp": (),
    ".node-gyp": ("node-gyp",),
    ".terraform.d/plugin-cache": (),
    "Library/Caches": (),
}
"""Caches below the home folder, and the programs that make them by themselves; none makes those without a name."""
ALWAYS: Final = ".cache"
"""Made in every home folder: programs look for it first, and then for a place of their own."""
NAMED_BY: Final = {
    "XDG_CACHE_HOME": "",
    "UV_CACHE_DIR": "",
    "PIP_CACHE_DIR": "",
    "GOMODCACHE": "",
    "GRADLE_USER_HOME": "",
    "DENO_DIR": "",
    "CARGO_HOME": "registry",
    "GOPATH": "pkg",
}
"""Variables that move a cache, and which part of the folder they name it is."""


def cache_folders(environment: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Existing folders, resolved, none inside another one."""
    named = [*(home / name for name in BELOW_HOME), *_find_named_caches(environment)]
    present = {os.fspath(path) for path in named}
    existing = sorted({Path(os.path.realpath(path)) for path in present if os.path.isdir(path)})
    outer = [path for path in existing if not home.is_relative_to(path) and path != Path(path.anchor)]
    return tuple(path for path in outer if not any(other in path.parents for other in outer))


def _find_named_caches(environment: Mapping[str, str]) -> list[Path]:
    """Caches that variables move, without a step upwards."""
    values = ((environment.get(name, ""), part) for name, part in NAMED_BY.items())
    return [Path(value) / part for value, part in values if value.startswith("/") and ".." not in value]


def make_caches(environment: Mapping[str, str], home: Path) -> None:
    """Make the caches below the user's own `home` that variables name, or that installed programs would make at their
    first run, since the home folder is read-only to them. No link is followed; what cannot be made stays away.
    """
    if not _is_mine(home):  # of another user, for whom a folder of root would be closed
        return
    entries = environment.get("PATH", os.defpath).split(os.pathsep)
    stamps = tuple((entry, _read_change_time(entry)) for entry in entries if entry.startswith("/"))
    named = [os.path.relpath(path, home) for path in _find_named_caches(environment) if path.is_relative_to(home)]
    for name in (*_caches_of_installed(stamps), *named):
        if not os.path.lexists(home / name):
            with contextlib.suppress(OSError):
                _make(home, name)


@lru_cache(maxsize=4)
def _caches_of_installed(entries: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Caches of the programs in folders of `PATH`, each with the time of its last change."""
    here = [folder for folder, _ in entries]
    installed = [
        name
        for name, programs in BELOW_HOME.items()
        if any(os.access(f"{folder}/{program}", os.X_OK) for folder in here for program in programs)
    ]
    return (ALWAYS, *installed)


def _is_mine(home: Path) -> bool:
    try:
        return os.stat(home).st_uid == os.getuid()
    except OSError:
        return False


def _read_change_time(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _make(home: Path, name: str) -> None:
    """Make a folder below `home`, and those above it.

    Raises:
        OSError: it cannot be made, or a folder above it is a link.
    """
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in Path(name).parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=descriptor)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
    finally:
        os.close(descriptor)
