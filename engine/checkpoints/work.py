"""What the thread of `CheckpointFolders` does: looks, comparisons, restores."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Event
from typing import TypeVar

import msgspec

from engine.checkpoints.book import LookBook
from engine.checkpoints.capture import Capture, room_in
from engine.checkpoints.contents import Contents
from engine.checkpoints.counting import counted, diff_of
from engine.checkpoints.looks import difference
from engine.checkpoints.restoring import Restoring
from engine.checkpoints.walk import MOST_ENTRIES, Stopped, TooMany, Walker
from engine.ports.files import Coverage, FileChange, FilesError, FileState, Look, Restored
from tools.contract import DiffDisplay

T = TypeVar("T")
PACKED_AT_ONCE = 300
TRIED_AGAIN = 600.0
"""Seconds after which a folder that was too large is walked again."""


class FolderWork:
    """Everything in one thread; `closes` is said of a job that an exit stopped."""

    def __init__(self, file: Path, excluded: Iterable[Path], stopping: Event, closes: str) -> None:
        self._file = file
        self._excluded = frozenset(os.fsencode(os.path.realpath(path)) for path in (*excluded, file.parent))
        self._stopping = stopping
        self._closes = closes
        self._contents: Contents | None = None
        self._walkers: dict[bytes, Walker] = {}
        self._too_large: dict[bytes, float] = {}
        self._looks: LookBook | None = None

    def guarded(self, job: Callable[[FolderWork], T]) -> T:
        """A job's result. Raises FilesError in one sentence."""
        try:
            return job(self)
        except Stopped as error:
            raise FilesError(self._closes) from error
        except sqlite3.Error as error:
            raise FilesError(
                f"The checkpoints in {self._file} cannot be used ({error}): move that file away."
            ) from error
        except (msgspec.DecodeError, LookupError) as error:
            raise FilesError(f"A checkpoint in {self._file} cannot be read ({error}).") from error
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FilesError(
                f"The folder {os.fsdecode(error.filename or '')} is gone: only the conversation can go back."
            ) from error
        except OSError as error:
            raise FilesError(f"{error.filename or 'The folder'} cannot be read: {error.strerror or error}.") from error

    def look(self, folder: Path) -> Look:
        """Remember the folder as it is now."""
        root = os.fsencode(folder)
        refusal = f"{folder} holds more than {MOST_ENTRIES:,} files: too many to keep an eye on."
        if time.monotonic() - self._too_large.get(root, float("-inf")) < TRIED_AGAIN:
            return Look("", Coverage(refusal=refusal))
        walker = self._walkers.setdefault(root, Walker(root, self._excluded, self._stopping))
        try:
            walked = walker.walk()
        except TooMany:
            self._too_large[root] = time.monotonic()
            return Look("", Coverage(refusal=refusal))
        contents, book = self._kept(), self._book()
        now = Capture(contents, room_in(contents), self._stopping).take(root, walked, book.newest(root))
        return Look(book.add(root, now), now.coverage)

    def warm(self, folder: Path) -> None:
        """Look, unless this process did before."""
        if not self._book().knows(os.fsencode(folder)):
            self.look(folder)

    def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """How one look differs from an earlier one."""
        found = difference(self._book().load(before), self._book().load(after))
        return counted(self._kept(), tuple(found))

    def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """What stands at these paths now."""
        contents = self._kept()
        return Capture(contents, room_in(contents)).states(os.fsencode(folder), paths)

    def diff(self, change: FileChange) -> DiffDisplay | None:
        """The change as a diff."""
        return diff_of(self._kept(), change)

    def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes with their lines counted."""
        return counted(self._kept(), changes)

    def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None
    ) -> tuple[Restored, ...]:
        """Make these changes."""
        return Restoring(self._kept(), os.fsencode(folder), made).run(changes)

    def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Drop what nothing needs any more."""
        return self._book().keep_only(changes, looks) if self._file.exists() else 0

    def tidy(self) -> bool:
        """Compress some of what was stored raw; False where nothing is left to do."""
        return bool(self._kept().pack_some(PACKED_AT_ONCE))

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
            self._looks = LookBook(self._kept())
        return self._looks

    def _kept(self) -> Contents:
        if self._contents is None:
            self._contents = Contents(self._file)
        return self._contents
