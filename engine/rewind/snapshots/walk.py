"""Contents of a folder: names, kinds and stats of all covered entries, without following a link.

Ignored is what git ignores, the caches below, and whatever marks itself as a cache (CACHEDIR.TAG, pyvenv.cfg).
Which names of a folder are ignored is asked once (`ignore`, natively) and again when its names or rules change:
a later walk of 20,000 files is 100 ms of scandir instead of 230.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from threading import Event

from msgspec import Struct, field

from engine.rewind.snapshots.safe_files import FOLDER_FLAGS, TEMPORARY, kind_of, open_root
from tools.files.walking import RULES, blocks_rules, blocks_rules_above, is_unicode, list_allowed

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
