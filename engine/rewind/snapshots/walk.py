"""Walks a folder and works on files beneath it, never following a link, whatever changes meanwhile (FAULTS 62).

Paths are bytes relative to the folder. Each part is opened from the one before it with O_NOFOLLOW. Ignored is what git
ignores, the caches below, and whatever marks itself as a cache (CACHEDIR.TAG, pyvenv.cfg). Which names of a folder are
ignored is asked once (`ignore`, natively) and again when its names or rules change: a later walk of 20,000 files is
100 ms of scandir instead of 230.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from threading import Event

from msgspec import Struct, field

from engine.ports.files import FileKind
from tools.files.walking import RULES, blocks_rules, blocks_rules_above, is_unicode, list_allowed

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK opening a named pipe would wait for its other end forever.
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
TEMPORARY = b".phoenix-restore-"
"""Prefix of the files that a restore writes next to others; no snapshot covers them."""


def open_root(root: bytes) -> int:
    """A descriptor of the folder itself. Raises OSError."""
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def holder(root: int, path: bytes, *, create: bool = False) -> Generator[tuple[int, bytes], None, None]:
    """A descriptor of the folder that holds `path`, and its name there; missing folders are made if asked.

    Raises:
        OSError: a part is missing, is no folder, is a link, climbs or is no name.
    """
    *parts, name = path.split(b"/")
    if not {b"", b".", b".."}.isdisjoint((*parts, name)) or b"\0" in path:
        raise OSError(errno.EINVAL, "no path in this folder", os.fsdecode(path))
    folder = os.dup(root)
    try:
        for part in parts:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            inner = os.open(part, FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def kind_of(mode: int) -> FileKind | None:
    """Kind of a path by its mode; None for kinds that are never touched."""
    if stat.S_ISREG(mode):
        return FileKind.FILE
    if stat.S_ISDIR(mode):
        return FileKind.FOLDER
    return FileKind.LINK if stat.S_ISLNK(mode) else None


def read_file(folder: int, name: bytes, most: int) -> tuple[os.stat_result, bytes] | None:
    """A regular file's state and its bytes; None where it is larger than `most` or changes while it is read.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise OSError(f"{os.fsdecode(name)} is not a regular file")
        if before.st_size > most:
            return None
        content = _read_all(descriptor, before.st_size)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    same = (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    return (after, content) if same and len(content) == after.st_size else None


def _read_all(descriptor: int, most: int) -> bytes:
    """Read at most `most` + 1 bytes; a file of the expected length takes one call."""
    first = os.read(descriptor, most + 1)
    if len(first) in {most, most + 1} or not first:
        return first
    parts, left = [first], most + 1 - len(first)
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def write_file(folder: int, name: bytes, content: bytes, mode: int, temporary: bytes) -> None:
    """Put a whole file in place: the old one or the new one, never a mixture."""
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def set_mode(folder: int, name: bytes, mode: int) -> None:
    """Change the mode of a file or folder, never of a link's target.

    Raises:
        OSError: it is gone, or a link.
    """
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)  # it may not be readable
    try:
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            raise OSError(errno.ELOOP, "it is a link", os.fsdecode(name))
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101 - a Path of it would be resolved by name
    finally:
        os.close(descriptor)


def write_link(folder: int, name: bytes, target: bytes, temporary: bytes) -> None:
    """Put a symbolic link in place, whatever its target is."""
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    os.symlink(target, temporary, dir_fd=folder)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


MOST_ENTRIES = 100_000
"""Files and folders after which a folder is too large to be covered."""
MADE_AGAIN = frozenset(
    {b"node_modules", b".venv", b"venv", b"__pycache__", b".tox", b".nox", b".mypy_cache", b".pytest_cache"}
    | {b".ruff_cache", b".cache", b".gradle", b".terraform", b".direnv", b".eggs"}
)
"""Folders that are large and recreated by tools; a rewind need not restore them."""
CACHES = MADE_AGAIN | {b".git", b".hg", b".svn", b".jj"}
"""Folders recreated by tools, and those of version control."""
CACHE_MARKS = frozenset({b"CACHEDIR.TAG", b"pyvenv.cfg"})


class TooMany(Exception):
    """The folder holds more than can be covered."""


class WalkStopped(Exception):
    """Raised when Phoenix closes: the result is no longer needed."""


class FolderWalk(Struct, frozen=True):
    """Result of a walk; paths are relative to the folder."""

    entries: Mapping[bytes, os.stat_result]
    left_out: frozenset[bytes]
    """The topmost paths that were passed over."""


class _Decision(Struct, eq=False):
    """Ignored names of one folder, for one list of names and one state of the rules."""

    names: frozenset[bytes]
    ignored: frozenset[bytes]
    rules: tuple[int, ...]


class _Walk(Struct, eq=False):
    entries: dict[bytes, os.stat_result] = field(default_factory=dict[bytes, os.stat_result])
    left_out: set[bytes] = field(default_factory=set[bytes])


class Walker:
    """Walks one folder again and again; `excluded` are absolute paths that are never entered."""

    def __init__(self, root: bytes, excluded: frozenset[bytes], stopping: Event) -> None:
        self._root = root
        self._stopping = stopping
        self._excluded = excluded
        self._decisions: dict[bytes, _Decision] = {}
        self._pipes: set[bytes] = set()
        """Folders with rule files that must not be opened, see `tools.files.walking`."""

    def walk(self) -> FolderWalk:
        """Walk all covered entries.

        Raises:
            OSError: the folder itself cannot be read.
            Stopped: `stopping` was set.
            TooMany: it holds more than MOST_ENTRIES files and folders.
        """
        found = _Walk()
        self._pipes = {b""} if blocks_rules_above(self._root) else set()
        root = open_root(self._root)
        try:
            self._enter(root, b"", (), found)
        finally:
            os.close(root)
        return FolderWalk(found.entries, frozenset(found.left_out))

    def _enter(self, folder: int, path: bytes, rules: tuple[int, ...], found: _Walk) -> None:
        if self._stopping.is_set():
            raise WalkStopped
        listing = _listing(folder)
        if path and not CACHE_MARKS.isdisjoint(listing):
            found.left_out.add(path[:-1])
            found.entries.pop(path[:-1], None)
            return
        own = [name for name in RULES if name in listing]
        rules = (*rules, *(value for name in own for value in _look_of(listing[name])))
        if blocks_rules((self._root + b"/" + path).rstrip(b"/"), listing):
            self._pipes.add(path)
        ignored = self._find_ignored(path, frozenset(listing), rules)
        inner: list[bytes] = []
        for name in sorted(listing):
            state, place = listing[name], path + name
            if name.startswith(TEMPORARY) or kind_of(state.st_mode) is None:
                continue
            if name in ignored or self._is_left_out(name, place, state):
                found.left_out.add(place)
                continue
            found.entries[place] = state
            if stat.S_ISDIR(state.st_mode):
                inner.append(name)
        if len(found.entries) > MOST_ENTRIES:
            raise TooMany
        for name in inner:
            self._enter_inner(folder, name, path + name, rules, found)

    def _enter_inner(self, folder: int, name: bytes, path: bytes, rules: tuple[int, ...], found: _Walk) -> None:
        try:
            inner = os.open(name, FOLDER_FLAGS, dir_fd=folder)
        except OSError:
            found.left_out.add(path)  # unreadable, gone, or a link by now
            found.entries.pop(path, None)
            return
        try:
            self._enter(inner, path + b"/", rules, found)
        finally:
            os.close(inner)

    def _is_left_out(self, name: bytes, path: bytes, state: os.stat_result) -> bool:
        if not stat.S_ISDIR(state.st_mode):
            return False
        return name in CACHES or self._root + b"/" + path in self._excluded

    def _find_ignored(self, path: bytes, names: frozenset[bytes], rules: tuple[int, ...]) -> frozenset[bytes]:
        known = self._decisions.get(path)
        if known is not None and known.rules == rules and known.names == names:
            return known.ignored
        blocked = any(path.startswith(one) for one in self._pipes)
        left = None if blocked else list_allowed(self._root + b"/" + path, len(names))
        ignored = (
            frozenset(name for name in names - left if is_unicode(name)) if left is not None else frozenset[bytes]()
        )
        self._decisions[path] = _Decision(names, ignored, rules)
        return ignored


def _listing(folder: int) -> dict[bytes, os.stat_result]:
    """Names and stats in an open folder."""
    found: dict[bytes, os.stat_result] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                found[os.fsencode(entry.name)] = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since it was listed
    return found


def _look_of(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_size, state.st_mtime_ns, state.st_ino
