"""Takes a snapshot of a folder: walks it, reads files unknown by their stat, keeps the contents."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Sequence
from threading import Event
from typing import TypeAlias

from msgspec import Struct, field

from engine.ports.files import CheckpointLimits, FileKind, FileState
from engine.rewind.snapshots.contents import Contents
from engine.rewind.snapshots.coverage import coverage_of
from engine.rewind.snapshots.folder_snapshots import NOTHING, RACY_NS, LookAt, SeenFile, stamp_of
from engine.rewind.snapshots.safe_files import holder, kind_of, open_root, read_file
from engine.rewind.snapshots.walk import FolderWalk, WalkStopped
from tools.files.protected import begins_as_key, looks_secret

Found: TypeAlias = "tuple[bytes, os.stat_result]"
"""A path and its stat."""
BATCH_BYTES = 8 * 1024 * 1024
BATCH_FILES = 1000


class Capture(Struct, eq=False):
    """One look in the making."""

    contents: Contents
    limits: CheckpointLimits = CheckpointLimits()
    stopping: Event = field(default_factory=Event)
    _batch: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    _batched: int = 0

    def take(self, root: bytes, walked: FolderWalk, before: LookAt = NOTHING) -> LookAt:
        """Take the snapshot of a walk; files unchanged since `before` are not read again.

        Raises:
            OSError: the folder is gone.
            Stopped: `stopping` was set.
            sqlite3.Error: contents cannot be kept.
        """
        entries, unknown = self._sort_entries(walked, before)
        folder = open_root(root)
        try:
            for members in _by_folder(unknown):
                if self.stopping.is_set():
                    raise WalkStopped
                self._see_all(folder, members, entries)
        finally:
            os.close(folder)
        self.flush()
        return LookAt(entries, walked.left_out, coverage_of(entries, walked.left_out, self.limits))

    def _sort_entries(self, walked: FolderWalk, before: LookAt) -> tuple[dict[bytes, SeenFile], list[Found]]:
        """Sort entries: known or kept by their stat alone, and those to be read.

        A folder has its share of the limit. Files changed since the last snapshot are read first, then small files: in
        a folder with data beside its sources the sources can be restored.
        """
        entries: dict[bytes, SeenFile] = {}
        changed: list[Found] = []
        new: list[Found] = []
        room = self.limits.folder
        for path, state in walked.entries.items():
            known = before.entries.get(path)
            if known is None or not known.stamp or known.stamp != stamp_of(state) or _to_be_kept_apart(path, known):
                (new if known is None else changed).append((path, state))
            elif known.state.kept or not self._fits(path, state) or _is_racy(state):
                entries[path] = known
                room -= known.state.size if known.state.kind is FileKind.FILE and known.state.kept else 0
            else:
                entries[path] = known  # there was no room for it
                new.append((path, state))
        unknown: list[Found] = []
        for path, state in (*sorted(changed, key=_bytes), *sorted(new, key=_bytes)):
            size = state.st_size if self._fits(path, state) else 0
            if size <= max(room, 0):
                room -= size
                unknown.append((path, state))
            elif entries.get(path) is None:
                entries[path] = _by_its_look(state)
        return entries, unknown

    def _fits(self, path: bytes, state: os.stat_result) -> bool:
        """True for a file whose content may be kept."""
        return stat.S_ISREG(state.st_mode) and state.st_size <= self.limits.file and not _is_secret(path)

    def _see_all(self, root: int, members: Sequence[Found], entries: dict[bytes, SeenFile]) -> None:
        """Files of one folder, opened once."""
        try:
            with holder(root, members[0][0]) as (folder, _):
                for path, state in members:
                    entries[path] = self._see(folder, path, state)
        except OSError:  # gone since it was walked
            for path, state in members:
                entries.setdefault(path, _unknown(state))

    def states(self, root: bytes, paths: Iterable[bytes]) -> dict[bytes, FileState | None]:
        """Present states of these paths. Raises like `take`."""
        folder = open_root(root)
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
            return None  # missing, or not reachable without following a link

    def flush(self) -> None:
        """Store the contents read so far."""
        if self._batch:
            self.contents.put(self._batch)
            self._batch, self._batched = {}, 0

    def _see(self, folder: int, path: bytes, state: os.stat_result) -> SeenFile:
        """State of `path`, whose last part is opened in `folder`."""
        name = path.rpartition(b"/")[2]
        match kind_of(state.st_mode):
            case FileKind.FOLDER:
                return SeenFile(FileState(FileKind.FOLDER, stat.S_IMODE(state.st_mode)), stamp_of(state))
            case FileKind.LINK:
                try:
                    target = os.readlink(name, dir_fd=folder)
                except OSError:
                    return _unknown(state)
                return SeenFile(FileState(FileKind.LINK, 0o777, target, len(target)), stamp_of(state))
            case FileKind.FILE if _is_secret(path) or state.st_size > self.limits.file:
                return _by_its_look(state)
            case FileKind.FILE:
                return self._read(folder, name, state) or _unknown(state)
            case None:
                return _unknown(state)

    def _read(self, folder: int, name: bytes, walked: os.stat_result) -> SeenFile | None:
        try:
            found = read_file(folder, name, self.limits.file)
        except OSError:
            return None
        if found is None or stamp_of(found[0]) != stamp_of(walked):
            return None  # it changes while it is read
        state, content = found
        if begins_as_key(content):
            return _by_its_look(state)
        digest = hashlib.sha256(content).digest()
        self._keep(digest, content)
        kept = FileState(FileKind.FILE, stat.S_IMODE(state.st_mode), digest, len(content))
        return SeenFile(kept, b"" if _is_racy(state) else stamp_of(state))

    def _keep(self, digest: bytes, content: bytes) -> None:
        if digest in self._batch:
            return
        self._batch[digest] = content
        self._batched += len(content)
        if self._batched >= BATCH_BYTES or len(self._batch) >= BATCH_FILES:
            self.flush()


def _is_racy(state: os.stat_result) -> bool:
    """True for a file that may change again without another time."""
    return time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) <= RACY_NS


def _bytes(found: Found) -> int:
    return found[1].st_size


def _to_be_kept_apart(path: bytes, known: SeenFile) -> bool:
    """True for keys that an earlier version copied."""
    return known.state.kept and _is_secret(path)


def _by_folder(found: Sequence[Found]) -> list[list[Found]]:
    """The same, together by folder: first where something changed last, since it is likely to change next."""
    folders: dict[bytes, list[Found]] = {}
    for one in found:
        folders.setdefault(one[0].rpartition(b"/")[0], []).append(one)
    return sorted(folders.values(), key=lambda members: -max(state.st_mtime_ns for _, state in members))


def _is_secret(path: bytes) -> bool:
    return looks_secret(os.fsdecode(path))


def _unknown(state: os.stat_result) -> SeenFile:
    """A file that could not be read: the next look tries again."""
    mode = stat.S_IMODE(state.st_mode)
    return SeenFile(FileState(FileKind.FILE, mode, b"?" + stamp_of(state), state.st_size, kept=False), b"")


def _by_its_look(state: os.stat_result) -> SeenFile:
    """A file whose content is not kept: two of the same size and time are taken for the same."""
    look = b"?%d:%d" % (state.st_size, state.st_mtime_ns)
    kept = FileState(FileKind.FILE, stat.S_IMODE(state.st_mode), look, state.st_size, kept=False)
    return SeenFile(kept, stamp_of(state))
