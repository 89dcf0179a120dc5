"""Takes a look at a folder: walks it, reads what is not known by its stat, keeps the contents."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.checkpoints.contents import Contents
from engine.checkpoints.looks import NOTHING, RACY_NS, LookAt, Seen, stamp_of
from engine.checkpoints.places import holder, kind_of, opened_root, read_file
from engine.checkpoints.walk import Walked
from engine.ports.files import Coverage, FileKind, FileState

MOST_BYTES = 16 * 1024 * 1024
"""A larger file is known by size and time only; it is not brought back."""
MOST_NEW = 1024 * 1024 * 1024
"""Bytes that one look may add."""
MOST_TOTAL = 8 * 1024 * 1024 * 1024
"""Bytes of the whole file of contents, after which nothing new is kept."""
BATCH_BYTES = 8 * 1024 * 1024
BATCH_FILES = 1000
SHOWN = 20


@dataclass(slots=True)
class Capture:
    """One look in the making."""

    contents: Contents
    room: int = MOST_NEW
    _batch: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    _batched: int = 0

    def take(self, root: bytes, walked: Walked, before: LookAt = NOTHING) -> LookAt:
        """The look that a walk makes; `before` tells what need not be read again.

        Raises:
            OSError: the folder is gone.
            sqlite3.Error: contents cannot be kept.
        """
        entries: dict[bytes, Seen] = {}
        unknown: list[tuple[bytes, os.stat_result]] = []
        for path, state in walked.entries.items():
            known = before.entries.get(path)
            if known is not None and known.stamp and known.stamp == stamp_of(state):
                entries[path] = known
            else:
                unknown.append((path, state))
        unknown.sort(key=lambda one: -one[1].st_mtime_ns)  # what changed last is likely to change next
        folder = opened_root(root)
        try:
            for path, state in unknown:
                entries[path] = self._see(folder, path, state)
        finally:
            os.close(folder)
        self.flush()
        return LookAt(entries, walked.left_out, _coverage(entries, walked.left_out))

    def states(self, root: bytes, paths: Iterable[bytes]) -> dict[bytes, FileState | None]:
        """What stands at these paths now. Raises like `take`."""
        folder = opened_root(root)
        found: dict[bytes, FileState | None] = {}
        try:
            for path in paths:
                found[path] = self._state(folder, path)
        finally:
            os.close(folder)
        self.flush()
        return found

    def _state(self, root: int, path: bytes) -> FileState | None:
        try:
            with holder(root, path) as (folder, name):
                state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return None  # nothing there, or not to be reached without following a link
        return self._see(root, path, state).state

    def flush(self) -> None:
        """Store what was read so far."""
        if self._batch:
            self.contents.put(self._batch)
            self._batch, self._batched = {}, 0

    def _see(self, root: int, path: bytes, state: os.stat_result) -> Seen:
        kind, mode = kind_of(state.st_mode), stat.S_IMODE(state.st_mode)
        unknown = Seen(FileState(FileKind.FILE, mode, b"?" + stamp_of(state), state.st_size, kept=False), b"")
        match kind:
            case FileKind.FOLDER:
                return Seen(FileState(FileKind.FOLDER, mode), stamp_of(state))
            case FileKind.LINK:
                try:
                    with holder(root, path) as (folder, name):
                        target = os.readlink(name, dir_fd=folder)
                except OSError:
                    return unknown
                return Seen(FileState(FileKind.LINK, 0o777, target, len(target)), stamp_of(state))
            case FileKind.FILE:
                return self._read(root, path, state) or unknown
            case None:
                return unknown

    def _read(self, root: int, path: bytes, walked: os.stat_result) -> Seen | None:
        if walked.st_size > MOST_BYTES:
            return _by_its_look(walked, trusted=True)
        if self.room <= 0:
            return _by_its_look(walked, trusted=False)
        try:
            with holder(root, path) as (folder, name):
                found = read_file(folder, name, MOST_BYTES)
        except OSError:
            return None
        if found is None or stamp_of(found[0]) != stamp_of(walked):
            return None  # it changes while it is looked at
        state, content = found
        digest = hashlib.sha256(content).digest()
        self._keep(digest, content)
        trusted = time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > RACY_NS
        kept = FileState(FileKind.FILE, stat.S_IMODE(state.st_mode), digest, len(content))
        return Seen(kept, stamp_of(state) if trusted else b"")

    def _keep(self, digest: bytes, content: bytes) -> None:
        if digest in self._batch:
            return
        self._batch[digest] = content
        self._batched += len(content)
        self.room -= len(content)
        if self._batched >= BATCH_BYTES or len(self._batch) >= BATCH_FILES:
            self.flush()


def room_in(contents: Contents) -> int:
    """Bytes that the next look may add."""
    return min(MOST_NEW, MOST_TOTAL - contents.size)


def _by_its_look(state: os.stat_result, *, trusted: bool) -> Seen:
    """A file whose content is not kept: two of the same size and time are taken for the same."""
    look = b"?%d:%d" % (state.st_size, state.st_mtime_ns)
    kept = FileState(FileKind.FILE, stat.S_IMODE(state.st_mode), look, state.st_size, kept=False)
    return Seen(kept, stamp_of(state) if trusted else b"")


def _coverage(entries: Mapping[bytes, Seen], left_out: frozenset[bytes]) -> Coverage:
    large = sorted(path for path, seen in entries.items() if not seen.state.kept)
    names = sorted(left_out)
    return Coverage(
        tuple(os.fsdecode(one) for one in names[:SHOWN]), len(names), tuple(os.fsdecode(one) for one in large[:SHOWN])
    )
