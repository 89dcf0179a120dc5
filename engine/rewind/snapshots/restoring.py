"""Restores files of a folder to an earlier state, each whole or not at all; files in an unexpected state are left
alone.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct, field

from engine.ports.files import CheckpointLimits, FileChange, FileKind, FileState, Restored, same_state
from engine.rewind.snapshots.capture import Capture
from engine.rewind.snapshots.contents import Contents
from engine.rewind.snapshots.safe_files import TEMPORARY, holder, open_root, set_mode, write_file, write_link

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
