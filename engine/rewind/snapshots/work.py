"""Jobs of the thread of `CheckpointFolders`: snapshots, comparisons with their lines added and removed, restores."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Event
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from engine.ports.files import (
    CheckpointLimits,
    Coverage,
    FileChange,
    FileKind,
    FilesError,
    FileState,
    FolderSnapshot,
    Restored,
)
from engine.rewind.snapshots.capture import Capture, Restoring, with_gone
from engine.rewind.snapshots.snapshot_store import Contents, LookAt, LookBook, difference, lies_in, stamp_of
from engine.rewind.snapshots.walk import MOST_ENTRIES, TooMany, Walker, WalkStopped, holder, open_root
from tools.contract import DiffDisplay
from tools.files.content import TextContent, diff_display, is_binary

MOST_COUNTED = 300
"""Changes of one turn whose lines are counted; the rest is shown without."""
MOST_BYTES = 1024 * 1024


def count_lines(contents: Contents, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """The same changes with their lines."""
    first = tuple(_count(contents, change) for change in changes[:MOST_COUNTED])
    return (*first, *changes[MOST_COUNTED:])


def diff_of(contents: Contents, change: FileChange) -> DiffDisplay | None:
    """The change as a diff; None where a side is no text, too large or not kept."""
    old, new = _text(contents, change.before), _text(contents, change.after)
    if old is None or new is None:
        return None
    return diff_display(change.name, old, new, created=change.before is None)


def _count(contents: Contents, change: FileChange) -> FileChange:
    diff = diff_of(contents, change)
    return change if diff is None else replace(change, added=diff.added, removed=diff.removed)


def _text(contents: Contents, state: FileState | None) -> str | None:
    if state is None:
        return ""
    if state.kind is not FileKind.FILE or not state.kept or state.size > MOST_BYTES:
        return None
    raw = contents.get(state.content)
    return None if raw is None or is_binary(raw) else TextContent.parse(raw).text


T = TypeVar("T")
REFUSAL = (
    "{folder} holds more than {most:,} files, too many to check; only files edited by tools are restored, not"
    " changes by commands."
)
PACKED_AT_ONCE = 300
TRIED_AGAIN = 600.0
"""Seconds after which a folder that was too large is walked again."""


class FolderWork:
    """Runs everything in one thread; `closes` is the error of a job that an exit stopped."""

    def __init__(
        self, file: Path, excluded: Iterable[Path], limits: CheckpointLimits, stopping: Event, closes: str
    ) -> None:
        self._file = file
        self._limits = limits
        self._excluded = frozenset(os.fsencode(os.path.realpath(path)) for path in (*excluded, file.parent))
        self._stopping = stopping
        self._closes = closes
        self._contents: Contents | None = None
        self._walkers: dict[bytes, Walker] = {}
        self._too_large: dict[bytes, float] = {}
        self._looks: LookBook | None = None

    def guard(self, job: Callable[[FolderWork], T]) -> T:
        """A job's result. Raises FilesError in one sentence."""
        try:
            return job(self)
        except WalkStopped as error:
            raise FilesError(self._closes) from error
        except sqlite3.Error as error:
            raise FilesError(
                f"The checkpoints in {self._file} cannot be used ({error}); move that file away."
            ) from error
        except (msgspec.DecodeError, LookupError) as error:
            raise FilesError(f"A checkpoint in {self._file} cannot be read ({error}).") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FilesError(
                f"The folder {os.fsdecode(error.filename or '')} no longer exists; "
                "only the conversation can be rewound."
            ) from error
        except OSError as error:
            raise FilesError(f"{error.filename or 'The folder'} cannot be read: {error.strerror or error}.") from error

    def look(self, folder: Path, since: str) -> FolderSnapshot:
        """Remember the folder as it is now; `since` names paths left out then and now missing."""
        root = os.fsencode(folder)
        refusal = REFUSAL.format(folder=folder, most=MOST_ENTRIES)
        if time.monotonic() - self._too_large.get(root, float("-inf")) < TRIED_AGAIN:
            return FolderSnapshot("", Coverage(refusal=refusal))
        walker = self._walkers.setdefault(root, Walker(root, self._excluded, self._stopping))
        try:
            walked = walker.walk()
        except TooMany:
            self._too_large[root] = time.monotonic()
            return FolderSnapshot("", Coverage(refusal=refusal))
        contents, book = self._open_contents(), self._book()
        now = Capture(contents, self._limits, self._stopping).take(root, walked, book.newest(root))
        coverage = self._with_gone(root, now, since) if since else now.coverage
        return FolderSnapshot(book.add(root, now), coverage)

    def _with_gone(self, root: bytes, now: LookAt, since: str) -> Coverage:
        folder = open_root(root)
        try:
            return with_gone(now, self._book().load(since), folder)
        finally:
            os.close(folder)

    def knows(self, folder: Path) -> bool:
        """True if the folder was looked at before."""
        return self._file.exists() and self._book().knows(os.fsencode(folder))

    def before_edit(self, folder: Path, paths: Sequence[bytes], look: str) -> dict[bytes, FileState | None]:
        """Keep the states of these paths, without those that the snapshot has; includes folders created for them."""
        if look:
            seen, root = self._book().load(look), open_root(os.fsencode(folder))
            try:
                paths = [path for path in paths if _adds(root, path, seen)]
            finally:
                os.close(root)
        if not paths:
            return {}
        above = {parent for path in paths for parent in _parents(path)}
        found = self.states(folder, [*above, *paths])
        return {path: state for path, state in found.items() if path not in above or state is None}

    def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Differences between two snapshots."""
        found = tuple(difference(self._book().load(before), self._book().load(after)))
        self._open_contents().renew(one.before.content for one in found if one.before is not None and one.before.kept)
        return count_lines(self._open_contents(), found)

    def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """Present states of these paths."""
        return Capture(self._open_contents(), self._limits).states(os.fsencode(folder), paths)

    def find_lost(self, states: Sequence[FileState]) -> frozenset[bytes]:
        """The contents of these that made room for newer ones."""
        wanted = {one.content for one in states if one.kept and one.kind is FileKind.FILE}
        return frozenset(wanted - self._open_contents().has(wanted))

    def diff(self, change: FileChange) -> DiffDisplay | None:
        """The change as a diff."""
        return diff_of(self._open_contents(), change)

    def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes with their lines counted."""
        return count_lines(self._open_contents(), changes)

    def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None
    ) -> tuple[Restored, ...]:
        """Make these changes."""
        return Restoring(self._open_contents(), os.fsencode(folder), made, self._limits).run(changes)

    def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Drop unneeded contents."""
        return self._book().keep_only(changes, looks) if self._file.exists() else 0

    def tidy(self) -> bool:
        """Compress some of the raw contents, then drop those beyond the limit; False when nothing is left."""
        if not self._file.exists():
            return False
        if self._open_contents().pack_some(PACKED_AT_ONCE):
            return True
        self._book().shrink(self._limits.total)
        return False

    def rest(self) -> None:
        """Keep no look in memory."""
        self._book().forget()
        self._walkers.clear()

    def let_go(self) -> None:
        """Close the file."""
        if self._contents is not None:
            self._contents.close()

    def _book(self) -> LookBook:
        if self._looks is None:
            self._looks = LookBook(self._open_contents())
        return self._looks

    def _open_contents(self) -> Contents:
        if self._contents is None:
            self._contents = Contents(self._file)
        return self._contents


def _parents(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]


def _adds(root: int, path: bytes, look: LookAt) -> bool:
    """True for a file that a look does not bring back, and that is as it was then."""
    seen = look.entries.get(path)
    if seen is None:
        return lies_in(path, look.left_out)
    if seen.state.kept:
        return False
    try:
        with holder(root, path) as (folder, name):
            return stamp_of(os.stat(name, dir_fd=folder, follow_symlinks=False)) == seen.stamp
    except OSError:
        return False
