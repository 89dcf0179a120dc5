"""`engine.ports.files.Folders`: one thread that looks, compares and restores, so that the loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from engine.ports.files import (
    CheckpointLimits,
    CheckpointUse,
    FileChange,
    FilesError,
    FileState,
    FolderSnapshot,
    Restored,
)
from engine.rewind.snapshots.worker import Worker
from tools.contract import DiffDisplay

if TYPE_CHECKING:
    from engine.rewind.snapshots.work import FolderWork

T = TypeVar("T")
CLOSES = "Phoenix closes."
CLOSING = 0.5
"""Seconds that closing waits for a job: a stored restore continues at the next start, a folder may never answer."""


class CheckpointFolders:
    """Contents in one file beside the attachments; `excluded` are Phoenix's own folders, which are never covered.

    The code of the thread (`work`) is loaded there, with the first job: no start needs it.
    """

    def __init__(self, file: Path, excluded: Iterable[Path] = (), limits: CheckpointLimits | None = None) -> None:
        self._file = file
        self._limits = limits or CheckpointLimits()
        self._excluded = tuple(excluded)
        self._worker = Worker("checkpoints")
        self._stopping = Event()
        self._made: FolderWork | None = None

    async def look(self, folder: Path, since: str = "") -> FolderSnapshot:
        """Remember the folder as it is now."""
        return await self._run(lambda work: work.look(folder, since))

    async def knows(self, folder: Path) -> bool:
        """True if the folder was looked at before."""
        return await self._run(lambda work: work.knows(folder))

    async def before_edit(self, folder: Path, paths: Sequence[bytes], look: str = "") -> dict[bytes, FileState | None]:
        """Keep the states of these paths, without those that the snapshot has."""
        return await self._run(lambda work: work.before_edit(folder, paths, look))

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Differences between two snapshots."""
        return await self._run(lambda work: work.changes(before, after))

    async def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """Present states of these paths."""
        return await self._run(lambda work: work.states(folder, paths))

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """The change as a diff."""
        return await self._run(lambda work: work.diff(change))

    async def find_lost(self, states: Sequence[FileState]) -> frozenset[bytes]:
        """The contents of these that made room for newer ones."""
        return await self._run(lambda work: work.find_lost(states))

    async def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes with their lines counted."""
        return await self._run(lambda work: work.count(changes))

    async def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None = None
    ) -> tuple[Restored, ...]:
        """Make these changes; once begun it completes, even for a cancelled caller."""
        return await self._run(lambda work: work.restore(folder, changes, made))

    async def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Drop unneeded contents."""
        return await self._run(lambda work: work.keep_only(changes, looks))

    def use(self) -> CheckpointUse:
        """Size of the kept contents, and the limits."""
        return use_of(self._file, self._limits)

    async def tidy(self) -> bool:
        """Compress some of the raw contents; False when none are left."""
        return await self._run(lambda work: work.tidy())

    async def rest(self) -> None:
        """Keep no look in memory: nothing has run for a while."""
        await self._run(lambda work: work.rest())

    async def close(self) -> None:
        """Stop looking, finish a restore, and close."""
        self._stopping.set()
        if self._worker.began:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING):
                    await self._worker.run(self._let_go)
        self._worker.end()

    def _let_go(self) -> None:
        if self._made is not None:
            self._made.let_go()

    async def _run(self, job: Callable[[FolderWork], T]) -> T:
        """Run the job in the thread; cancelling the caller does not stop it.

        Raises:
            FilesError: it cannot be done.
        """
        if self._stopping.is_set():
            raise FilesError(CLOSES)
        return await self._worker.run(lambda: self._work().guard(job))

    def _work(self) -> FolderWork:
        if self._made is None:
            from engine.rewind.snapshots.work import FolderWork  # noqa: PLC0415 - in this thread, see the class

            self._made = FolderWork(self._file, self._excluded, self._limits, self._stopping, CLOSES)
        return self._made


def use_of(file: Path, limits: CheckpointLimits) -> CheckpointUse:
    """Size of the file of contents, read without opening it."""
    try:
        return CheckpointUse(file.stat().st_size, limits)
    except OSError:
        return CheckpointUse(0, limits)
