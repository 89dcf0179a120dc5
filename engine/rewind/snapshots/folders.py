"""`engine.ports.files.Folders`: looks, compares and restores in one thread, off the loop, or keeps nothing.

No exit waits for the thread: a network folder may never answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar, cast

from engine.ports.files import (
    CheckpointLimits,
    CheckpointUse,
    Coverage,
    FileChange,
    FilesError,
    FileState,
    FolderSnapshot,
    Restored,
)
from tools.contract import DiffDisplay

if TYPE_CHECKING:
    from engine.rewind.snapshots.work import FolderWork


Job = Callable[[], object]
Ended = Callable[[object, BaseException | None], None]


class Worker:
    """Does jobs in order, on a daemon thread that begins with the first one.

    Not a ThreadPoolExecutor: the interpreter waits for the threads of those, however long they hang.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[tuple[Job, Ended] | None] = SimpleQueue()
        self._thread: Thread | None = None

    @property
    def began(self) -> bool:
        """True once a job was submitted."""
        return self._thread is not None

    async def run(self, job: Callable[[], T]) -> T:
        """Run `job` in the thread and return its result or raise its error; cancelling the caller does not stop it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[object] = loop.create_future()
        answer.add_done_callback(_retrieve_exception)

        def end(result: object, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop may be gone by then, with all callers
                loop.call_soon_threadsafe(_settle, answer, result, error)

        if self._thread is None:
            self._thread = Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put((job, end))
        return cast("T", await asyncio.shield(answer))

    def end(self) -> None:
        """Let the thread go when everything before this is done."""
        self._jobs.put(None)

    def _serve(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, ended = item
            try:
                result = job()
            except BaseException as error:  # noqa: BLE001 - it is raised where the job is waited for
                ended(None, error)
            else:
                ended(result, None)
            del item, job, ended  # the objects of a job must not stay until the next one


def _retrieve_exception(answer: asyncio.Future[object]) -> None:
    """Retrieve the exception of an abandoned job, so that asyncio does not report it."""
    if not answer.cancelled():
        answer.exception()


def _settle(answer: asyncio.Future[object], result: object, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)


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


SWITCHED_OFF = "Checkpoints are off (checkpoint_total_mb = 0); only the conversation can be rewound."
REFUSAL = "This session saves nothing on disk; only the conversation can be rewound."


class NoFolders:
    """Covers nothing and says so."""

    def __init__(self, refusal: str = REFUSAL) -> None:
        self._refusal = refusal

    async def look(self, folder: Path, since: str = "") -> FolderSnapshot:
        """A look that covers nothing."""
        return FolderSnapshot("", Coverage(refusal=self._refusal))

    async def knows(self, folder: Path) -> bool:
        """Return False: no folder is known."""
        return False

    async def before_edit(self, folder: Path, paths: Sequence[bytes], look: str = "") -> dict[bytes, FileState | None]:
        """Return no states: nothing is kept."""
        return {}

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return no changes: none are known."""
        return ()

    async def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """Raises FilesError."""
        raise FilesError(self._refusal)

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """Return None: there is nothing to compare."""
        return None

    async def find_lost(self, states: Sequence[FileState]) -> frozenset[bytes]:
        """Return no contents: nothing was kept."""
        return frozenset()

    async def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes."""
        return tuple(changes)

    async def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None = None
    ) -> tuple[Restored, ...]:
        """Raises FilesError."""
        raise FilesError(self._refusal)

    async def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Return 0: there is nothing to drop."""
        return 0

    def use(self) -> None:
        """Return None: nothing is ever kept."""

    async def tidy(self) -> bool:
        """Return False: there is nothing to do."""
        return False

    async def rest(self) -> None:
        """Do nothing: nothing is in memory."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""
