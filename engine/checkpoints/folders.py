"""`engine.ports.files.Folders`: one thread that looks, compares and restores, so that the loop stays free."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
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
from engine.checkpoints.worker import Worker
from engine.ports.files import Coverage, FileChange, FilesError, FileState, Look, Restored
from tools.contract import DiffDisplay

T = TypeVar("T")
PACKED_AT_ONCE = 300
CLOSES = "Phoenix closes."
TRIED_AGAIN = 600.0
"""Seconds after which a folder that was too large is walked again."""
CLOSING = 0.5
"""Seconds that closing waits for a job: a stored restore goes on at the next start, a folder may never answer."""


class CheckpointFolders:
    """Contents in one file beside the attachments; `excluded` are Phoenix's own folders, which are never covered."""

    def __init__(self, file: Path, excluded: Iterable[Path] = ()) -> None:
        self._file = file
        self._excluded = frozenset(os.fsencode(os.path.realpath(path)) for path in (*excluded, file.parent))
        self._worker = Worker("checkpoints")
        self._contents: Contents | None = None
        self._stopping = Event()
        self._walkers: dict[bytes, Walker] = {}
        self._too_large: dict[bytes, float] = {}
        self._looks: LookBook | None = None

    async def look(self, folder: Path) -> Look:
        """Remember the folder as it is now."""
        return await self._run(lambda: self._look(folder))

    async def warm(self, folder: Path) -> None:
        """Look, unless this process did before: ahead of the first tool, while the model thinks."""
        await self._run(lambda: None if self._book().knows(os.fsencode(folder)) else self._look(folder))

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """How one look differs from an earlier one."""

        def job() -> tuple[FileChange, ...]:
            found = difference(self._book().load(before), self._book().load(after))
            return counted(self._kept(), tuple(found))

        return await self._run(job)

    async def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """What stands at these paths now."""

        def job() -> dict[bytes, FileState | None]:
            contents = self._kept()
            return Capture(contents, room_in(contents)).states(os.fsencode(folder), paths)

        return await self._run(job)

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """The change as a diff."""
        return await self._run(lambda: diff_of(self._kept(), change))

    async def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes with their lines counted."""
        return await self._run(lambda: counted(self._kept(), changes))

    async def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None = None
    ) -> tuple[Restored, ...]:
        """Make these changes; once begun it ends, whoever waits for it."""
        return await self._run(lambda: Restoring(self._kept(), os.fsencode(folder), made).run(changes))

    async def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Drop what nothing needs any more."""
        return await self._run(lambda: self._book().keep_only(changes, looks) if self._file.exists() else 0)

    async def tidy(self) -> bool:
        """Compress some of what was stored raw; False where nothing is left to do."""
        return await self._run(lambda: bool(self._kept().pack_some(PACKED_AT_ONCE)))

    async def rest(self) -> None:
        """Keep no look in memory: nothing has run for a while."""

        def job() -> None:
            self._book().forget()
            self._walkers.clear()

        await self._run(job)

    async def close(self) -> None:
        """Stop looking, finish a restore, and close."""
        self._stopping.set()
        if self._worker.began:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING):
                    await self._worker.run(self._let_go)
        self._worker.end()

    def _let_go(self) -> None:
        if self._contents is not None:
            self._contents.close()

    async def _run(self, job: Callable[[], T]) -> T:
        """Do it in the thread; cancelling whoever waits does not stop it.

        Raises:
            FilesError: it cannot be done.
        """
        if self._stopping.is_set():
            raise FilesError(CLOSES)
        return await self._worker.run(lambda: self._guarded(job))

    def _guarded(self, job: Callable[[], T]) -> T:
        try:
            return job()
        except Stopped as error:
            raise FilesError(CLOSES) from error
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

    def _book(self) -> LookBook:
        if self._looks is None:
            self._looks = LookBook(self._kept())
        return self._looks

    def _kept(self) -> Contents:
        if self._contents is None:
            self._contents = Contents(self._file)
        return self._contents

    def _look(self, folder: Path) -> Look:
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
