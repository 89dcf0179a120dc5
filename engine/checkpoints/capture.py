"""Takes a look at a folder: walks it, reads what is not known by its stat, keeps the contents."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from threading import Event
from typing import TypeAlias

from msgspec import Struct, field

from engine.checkpoints.contents import Contents
from engine.checkpoints.looks import NOTHING, RACY_NS, LookAt, Seen, stamp_of
from engine.checkpoints.places import holder, kind_of, opened_root, read_file
from engine.checkpoints.walk import MADE_AGAIN, Stopped, Walked
from engine.ports.files import Coverage, FileKind, FileState
from tools.files.protected import begins_as_key, looks_secret

Found: TypeAlias = "tuple[bytes, os.stat_result]"
"""A path and its stat."""
MOST_BYTES = 16 * 1024 * 1024
"""A larger file is known by size and time only; it is not brought back."""
MOST_NEW = 1024 * 1024 * 1024
"""Bytes that one look may add."""
MOST_TOTAL = 8 * 1024 * 1024 * 1024
"""Bytes of the whole file of contents, after which nothing new is kept."""
BATCH_BYTES = 8 * 1024 * 1024
BATCH_FILES = 1000
SHOWN = 20


class Capture(Struct, eq=False):
    """One look in the making."""

    contents: Contents
    room: int = MOST_NEW
    stopping: Event = field(default_factory=Event)
    _batch: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    _batched: int = 0

    def take(self, root: bytes, walked: Walked, before: LookAt = NOTHING) -> LookAt:
        """The look that a walk makes; `before` tells what need not be read again.

        Raises:
            OSError: the folder is gone.
            Stopped: `stopping` was set.
            sqlite3.Error: contents cannot be kept.
        """
        entries: dict[bytes, Seen] = {}
        unknown: list[tuple[bytes, os.stat_result]] = []
        for path, state in walked.entries.items():
            known = before.entries.get(path)
            kept_secret = known is not None and known.state.kept and _is_secret(path)  # by an earlier version
            if known is not None and known.stamp and known.stamp == stamp_of(state) and not kept_secret:
                entries[path] = known
            else:
                unknown.append((path, state))
        folder = opened_root(root)
        try:
            for members in _by_folder(unknown):
                if self.stopping.is_set():
                    raise Stopped
                self._see_all(folder, members, entries)
        finally:
            os.close(folder)
        self.flush()
        return LookAt(entries, walked.left_out, _coverage(entries, walked.left_out))

    def _see_all(self, root: int, members: Sequence[Found], entries: dict[bytes, Seen]) -> None:
        """Files of one folder, opened once."""
        try:
            with holder(root, members[0][0]) as (folder, _):
                for path, state in members:
                    entries[path] = self._see(folder, path, state)
        except OSError:  # gone since it was walked
            for path, state in members:
                entries.setdefault(path, _unknown(state))

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
                return self._see(folder, path, state).state if kind_of(state.st_mode) else None
        except OSError:
            return None  # nothing there, or not to be reached without following a link

    def flush(self) -> None:
        """Store what was read so far."""
        if self._batch:
            self.contents.put(self._batch)
            self._batch, self._batched = {}, 0

    def _see(self, folder: int, path: bytes, state: os.stat_result) -> Seen:
        """What stands at `path`, whose last part is opened in `folder`."""
        name = path.rpartition(b"/")[2]
        match kind_of(state.st_mode):
            case FileKind.FOLDER:
                return Seen(FileState(FileKind.FOLDER, stat.S_IMODE(state.st_mode)), stamp_of(state))
            case FileKind.LINK:
                try:
                    target = os.readlink(name, dir_fd=folder)
                except OSError:
                    return _unknown(state)
                return Seen(FileState(FileKind.LINK, 0o777, target, len(target)), stamp_of(state))
            case FileKind.FILE if _is_secret(path):
                return _by_its_look(state, trusted=True)
            case FileKind.FILE:
                return self._read(folder, name, state) or _unknown(state)
            case None:
                return _unknown(state)

    def _read(self, folder: int, name: bytes, walked: os.stat_result) -> Seen | None:
        if walked.st_size > MOST_BYTES:
            return _by_its_look(walked, trusted=True)
        if self.room <= 0:
            return _by_its_look(walked, trusted=False)
        try:
            found = read_file(folder, name, MOST_BYTES)
        except OSError:
            return None
        if found is None or stamp_of(found[0]) != stamp_of(walked):
            return None  # it changes while it is looked at
        state, content = found
        if begins_as_key(content):
            return _by_its_look(state, trusted=True)
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


def _by_folder(found: Sequence[Found]) -> list[list[Found]]:
    """The same, together by folder: first where something changed last, since it is likely to change next."""
    folders: dict[bytes, list[Found]] = {}
    for one in found:
        folders.setdefault(one[0].rpartition(b"/")[0], []).append(one)
    return sorted(folders.values(), key=lambda members: -max(state.st_mtime_ns for _, state in members))


def _is_secret(path: bytes) -> bool:
    return looks_secret(os.fsdecode(path))


def _unknown(state: os.stat_result) -> Seen:
    """A file that could not be read: the next look tries again."""
    mode = stat.S_IMODE(state.st_mode)
    return Seen(FileState(FileKind.FILE, mode, b"?" + stamp_of(state), state.st_size, kept=False), b"")


def _by_its_look(state: os.stat_result, *, trusted: bool) -> Seen:
    """A file whose content is not kept: two of the same size and time are taken for the same."""
    look = b"?%d:%d" % (state.st_size, state.st_mtime_ns)
    kept = FileState(FileKind.FILE, stat.S_IMODE(state.st_mode), look, state.st_size, kept=False)
    return Seen(kept, stamp_of(state) if trusted else b"")


def _coverage(entries: Mapping[bytes, Seen], left_out: frozenset[bytes]) -> Coverage:
    large = sorted(path for path, seen in entries.items() if not seen.state.kept)
    names = sorted(path for path in left_out if path.rpartition(b"/")[2] not in MADE_AGAIN)
    return Coverage(
        tuple(os.fsdecode(one) for one in names[:SHOWN]), len(names), tuple(os.fsdecode(one) for one in large[:SHOWN])
    )
