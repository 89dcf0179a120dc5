"""Takes a snapshot of a folder, describes the files that it cannot restore, and restores files to an earlier state.

A look walks the folder, reads files unknown by their stat and keeps the contents. A file is restored whole or not at
all, and one in an unexpected state is left alone.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ports.files import CheckpointLimits, Coverage, FileChange, FileKind, FileState, Restored, same_state
from engine.rewind.snapshots.snapshot_store import NOTHING, RACY_NS, Contents, LookAt, SeenFile, stamp_of
from engine.rewind.snapshots.walk import (
    MADE_AGAIN,
    TEMPORARY,
    FolderWalk,
    WalkStopped,
    holder,
    kind_of,
    open_root,
    read_file,
    set_mode,
    write_file,
    write_link,
)
from tools.files.protected import begins_as_key, looks_secret

SHOWN = 20
MISSED = frozenset({b"node_modules", b".venv", b"venv", b".tox", b".nox", b".terraform"})
"""Folders that tools recreate, but slowly: reported when one is gone."""


def coverage_of(entries: Mapping[bytes, SeenFile], left_out: Iterable[bytes], limits: CheckpointLimits) -> Coverage:
    """The coverage of a look."""
    missing = sorted(path for path, seen in entries.items() if not seen.state.kept)
    secret = [path for path in missing if looks_secret(os.fsdecode(path))]
    known = frozenset(secret)
    large = [path for path in missing if entries[path].state.size > limits.file and path not in known]
    names = sorted(path for path in left_out if _name(path) not in MADE_AGAIN)
    return Coverage(
        left_out=_show_paths(names),
        left_out_count=len(names),
        too_large=_show_paths(large),
        secret=_show_paths(secret),
        over=len(missing) - len(secret) - len(large),
    )


def with_gone(now: LookAt, before: LookAt, folder: int) -> Coverage:
    """The coverage of a snapshot, with paths left out by the one before and now gone; `folder` is an open one."""
    missing = sorted(before.left_out - now.left_out - now.entries.keys())
    gone = [path for path in missing if _is_missed(path) and not _stands(folder, path)]
    return replace(now.coverage, gone=_show_paths(gone)) if gone else now.coverage


def _is_missed(path: bytes) -> bool:
    return _name(path) in MISSED or not any(part in MADE_AGAIN for part in path.split(b"/"))


def _stands(folder: int, path: bytes) -> bool:
    try:
        os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _show_paths(paths: list[bytes]) -> tuple[str, ...]:
    return tuple(os.fsdecode(one) for one in paths[:SHOWN])


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


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


CHANGED = "changed since then by someone else"
NOT_KEPT = "its earlier content was not saved"
NOT_EMPTY = "holds other files"


class Restoring(Struct, eq=False):
    """One restore. `before` of a change is the expected state, `after` the target; both are checked."""

    contents: Contents
    root: bytes
    made: Callable[[int], None] | None = None
    limits: CheckpointLimits = CheckpointLimits()
    _problems: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _folder: int = -1

    def run(self, changes: Sequence[FileChange]) -> tuple[Restored, ...]:
        """Make the changes: first removals, deepest first, then creations, outermost first.

        Raises:
            OSError: the folder itself is gone.
            sqlite3.Error: contents cannot be read.
        """
        ordered = sorted(changes, key=lambda change: change.path)
        self._folder = open_root(self.root)
        try:
            self._check(ordered)
            good = [change for change in ordered if change.path not in self._problems]
            places = {change.path.rpartition(b"/")[0] for change in good}
            self._sweep(places)  # first, since only empty folders can be removed
            self._each([one for one in reversed(good) if _goes(one)], self._remove)
            self._each([one for one in good if one.after is not None], self._put)
            self._each([one for one in reversed(good) if _is_folder(one.after)], self._set_mode)
            self._sweep(places)
        finally:
            os.close(self._folder)
        return tuple(Restored(change.path, self._problems.get(change.path, "")) for change in ordered)

    def _check(self, changes: Sequence[FileChange]) -> None:
        now = Capture(self.contents, self.limits).states(self.root, [change.path for change in changes])
        for change in changes:
            found, wanted = now[change.path], change.after
            if not _is_expected(found, change):
                self._problems[change.path] = CHANGED
            elif wanted is not None and wanted.kind is FileKind.FILE and self._content(wanted) is None:
                self._problems[change.path] = NOT_KEPT

    def _each(self, changes: Sequence[FileChange], act: Callable[[FileChange], None]) -> None:
        for place, change in enumerate(changes):
            if change.path in self._problems:
                continue
            try:
                act(change)
            except OSError as error:
                self._problems[change.path] = _words(error)
            if self.made is not None:
                self.made(place + 1)

    def _remove(self, change: FileChange) -> None:
        try:
            with holder(self._folder, change.path) as (folder, name):
                state = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(state.st_mode) != _is_folder(change.before):
                    return  # it is already in the target state
                if stat.S_ISDIR(state.st_mode):
                    os.rmdir(name, dir_fd=folder)
                else:
                    os.unlink(name, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return  # gone, with its folder

    def _put(self, change: FileChange) -> None:
        wanted = change.after
        if wanted is None:
            return
        temporary = TEMPORARY + b"%d.tmp" % os.getpid()
        with holder(self._folder, change.path, create=True) as (folder, name):
            match wanted.kind:
                case FileKind.FOLDER:
                    try:
                        os.mkdir(name, 0o700, dir_fd=folder)
                    except FileExistsError:
                        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                            raise
                    set_mode(folder, name, wanted.mode | stat.S_IRWXU)
                case FileKind.LINK:
                    if _link_at(folder, name) != wanted.content:
                        write_link(folder, name, wanted.content, temporary)
                case FileKind.FILE:
                    content = self._content(wanted)
                    if content is not None:
                        write_file(folder, name, content, wanted.mode, temporary)

    def _set_mode(self, change: FileChange) -> None:
        """Last, since nothing can be written into a folder that takes no writes."""
        if change.after is not None:
            with holder(self._folder, change.path) as (folder, name):
                set_mode(folder, name, change.after.mode)

    def _sweep(self, places: set[bytes]) -> None:
        """Remove temporary files of a killed restore."""
        for place in places:
            with suppress(OSError), holder(self._folder, place + b"/-" if place else b"-") as (folder, _):
                with os.scandir(folder) as entries:
                    names = [os.fsencode(entry.name) for entry in entries]
                for name in names:
                    if name.startswith(TEMPORARY) and not _lives(name):
                        os.unlink(name, dir_fd=folder)

    def _content(self, state: FileState) -> bytes | None:
        return self.contents.get(state.content) if state.kept else None


def _is_expected(found: FileState | None, change: FileChange) -> bool:
    """True without changes by others: it is as before, as wanted, or as a crash between the two leaves it."""
    if found is None and _goes(change):
        return True
    if _is_folder(found):  # it has other mode bits until it is complete
        return _is_folder(change.before) or _is_folder(change.after)
    return same_state(found, change.before) or same_state(found, change.after)


def _goes(change: FileChange) -> bool:
    """True when the present entry must be removed before another can replace it."""
    before, after = change.before, change.after
    return before is not None and (after is None or (after.kind is FileKind.FOLDER) != _is_folder(before))


def _is_folder(state: FileState | None) -> bool:
    return state is not None and state.kind is FileKind.FOLDER


def _lives(temporary: bytes) -> bool:
    """True when the process that a temporary file is named after is alive."""
    number = temporary.removeprefix(TEMPORARY).partition(b".")[0]
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True


def _link_at(folder: int, name: bytes) -> bytes | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _words(error: OSError) -> str:
    if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
        return NOT_EMPTY
    return (error.strerror or str(error)).lower()
