"""Recorder of turns: states before the first tool that may change files, and at the end of the run.

A tool that edits names its files, so those alone are kept; before a command the whole folder is looked at. A run
without either costs nothing (docs/decisions/checkpoints.md).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ports import Clock, Ids, StorageError
from engine.ports.files import (
    Coverage,
    FileChange,
    FilesError,
    FileState,
    FileStep,
    Folders,
    FolderSnapshot,
    StepKind,
    StepState,
    same_state,
)
from engine.records import ConversationRecord
from tools.files.protected import looks_secret

if TYPE_CHECKING:
    from engine.store.turns import TurnLog


def sort_paths(folder: Path, paths: Iterable[Path]) -> tuple[list[bytes], list[str]]:
    """The resolved `paths` below the folder, relative to it, and those outside, which are not kept."""
    inside, outside = list[bytes](), list[str]()
    for path in paths:
        if path != folder and path.is_relative_to(folder):
            inside.append(os.fsencode(path.relative_to(folder)))
        else:
            outside.append(str(path))
    return inside, outside


def coverage_of(states: Mapping[bytes, FileState | None], outside: Sequence[str]) -> Coverage:
    """Coverage of the named files: those that cannot be restored."""
    missing = [os.fsdecode(path) for path, state in states.items() if state is not None and not state.kept]
    return Coverage(
        left_out=tuple(outside),
        left_out_count=len(outside),
        too_large=tuple(one for one in missing if not looks_secret(one)),
        secret=tuple(one for one in missing if looks_secret(one)),
    )


def join_coverage(one: Coverage, other: Coverage) -> Coverage:
    """Union of two coverages; sums and reasons of `other` count."""
    new = [name for name in one.left_out if name not in other.left_out]
    return replace(
        other,
        left_out=(*new, *other.left_out),
        left_out_count=len(new) + other.left_out_count,
        too_large=tuple(dict.fromkeys((*one.too_large, *other.too_large))),
        secret=tuple(dict.fromkeys((*one.secret, *other.secret))),
        refusal=other.refusal or one.refusal,
        over=max(one.over, other.over),
    )


def merge_changes(
    found: Iterable[FileChange], named: Iterable[FileChange], now: Mapping[bytes, FileState | None]
) -> tuple[FileChange, ...]:
    """The changes that two looks found, with those of named files, whose earlier state was kept before both."""
    changes = {one.path: one for one in found}
    for one in named:
        changes.pop(one.path, None)
        present = now.get(one.path)
        if not same_state(one.before, present):
            changes[one.path] = FileChange(one.path, one.before, present)
    return tuple(changes[path] for path in sorted(changes))


log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds the tools of a run wait for its first snapshot of a large folder, which continues beside them."""
SETTLING = 10.0
"""Seconds that a rewind waits for the current states: a network folder may never answer."""
CLOSING = 1.0
"""Seconds that an exit waits for it; open steps are completed at the next opening."""

KEPT_SECONDS = 300.0
"""Seconds that snapshots stay in memory while nothing runs, about 300 bytes a file."""
FRESH = 2.0
"""Seconds for which a look that was taken ahead of its tool holds."""


class Begun(Struct, eq=False):
    """States before the tools of a run."""

    step_id: str
    task: asyncio.Task[FileStep | None]
    """The stored step, when all requested states are kept."""
    began: float
    """Monotonic."""
    whole: bool
    """The folder is looked at, not named files alone."""
    early: bool
    """Taken while the call was still being written, so no tool has run since."""
    waited: bool = False
    """True once a tool has waited for it in vain; the next ones do not."""
    named: set[Path] = field(default_factory=set[Path])


class TurnRecorder(Struct, eq=False):
    """The looks of all conversations that are open here. Nothing it does can fail a run."""

    folders: Folders
    log: TurnLog
    clock: Clock
    ids: Ids
    patience: float = PATIENCE
    settling: float = SETTLING
    closing: float = CLOSING
    begun: dict[str, Begun] = field(default_factory=dict[str, "Begun"])
    """Recordings by conversation, while its run is in progress."""
    _aside: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    _ending: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    _tidying: bool = False
    _resting: asyncio.TimerHandle | None = None
    """Timer that drops the snapshots in memory: one for all runs, set anew by each."""

    def command_drafted(self, record: ConversationRecord) -> None:
        """Take a snapshot while the model writes a command that may run, if only changes must be read."""
        if record.id not in self.begun:
            self._start(record, early=True)

    async def before_command(self, record: ConversationRecord) -> None:
        """Look at the folder unless this run did; returns up waiting after a while, never raises."""
        look = await self._find_usable(record)
        if look is None:
            look = self._start(record)
        elif not look.whole:
            look.whole, look.waited = True, False
            look.task = asyncio.create_task(self._widen(record, look.task))
        look.early = False
        await self._wait_for(look)

    async def before_edit(self, record: ConversationRecord, paths: Sequence[Path]) -> None:
        """Keep the states of these paths the first time that this run names them; never raises."""
        look = await self._find_usable(record)
        new = tuple(path for path in paths if look is None or path not in look.named)
        if not new:
            return
        if look is None:
            look = self._start(record, new)
        else:
            look.task, look.early = asyncio.create_task(self._name(look.task, new)), False
            look.named.update(new)
        await self._wait_for(look)

    async def _find_usable(self, record: ConversationRecord) -> Begun | None:
        """The look of this run, unless it was taken early and came to nothing, or is out of date by now."""
        look = self.begun.get(record.id)
        if look is None or not look.early:
            return look
        await self._wait_for(look)
        if not look.task.done():
            return look
        old = self.clock.monotonic() - look.began > FRESH  # files may have changed while the question was open
        return None if old or look.task.result() is None else look

    async def _wait_for(self, look: Begun) -> None:
        if not look.task.done() and not look.waited:
            await asyncio.wait({look.task}, timeout=self.patience)
            look.waited = not look.task.done()

    def run_ended(self, record: ConversationRecord) -> None:
        """Determine the changes of the ended run in the background."""
        look = self.begun.pop(record.id, None)
        if look is not None:
            self._ending[record.id] = task = asyncio.create_task(self._end(record.id, look))
            self._aside.add(task)  # the end of the next run may overlap with it while it waits for a folder
            task.add_done_callback(self._aside.discard)

    async def settle(self, conversation_id: str) -> None:
        """Wait a limited time for all ended runs, and close steps that a crash left open."""
        try:
            async with asyncio.timeout(self.settling):
                ending = self._ending.get(conversation_id)
                if ending is not None:
                    await asyncio.wait({ending})
                if conversation_id not in self.begun:
                    await self._close_open(conversation_id)
        except TimeoutError:
            log.warning("what a turn changed is not known yet: the folder does not answer")
        except FilesError as error:  # the step stays open: its changes are found once the folder is back
            log.warning("what a turn changed could not be found out: %s", error)

    async def so_far(self, conversation_id: str) -> FileStep | None:
        """Changes of the current run so far; None without a run, or when its folder does not answer."""
        begun = self.begun.get(conversation_id)
        if begun is None:
            return None
        try:
            async with asyncio.timeout(self.settling):
                step = await asyncio.shield(begun.task)
                return None if step is None else await self._find_changes(step)
        except (TimeoutError, FilesError) as error:
            log.warning("what a turn has changed so far is not known: %s", error)
            return None

    async def close(self) -> None:
        """Wait a limited time for pending steps."""
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        if self._ending:
            await asyncio.wait(set(self._ending.values()), timeout=self.closing)
        left = {*self._aside, *self._ending.values(), *(look.task for look in self.begun.values())}
        for task in left:
            task.cancel()
        if left:  # they only wait for threads, so they end at once
            await asyncio.wait(left)

    def _run_aside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _tidy(self) -> None:
        """Pack kept contents, one at a time; the snapshots in memory go when nothing has run for a while."""
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(KEPT_SECONDS, self.rest)
        if self._tidying:
            return
        self._tidying = True
        try:
            while await self.folders.tidy():
                pass
        except FilesError as error:
            log.warning("contents stay as they are: %s", error)
        finally:
            self._tidying = False

    @property
    def keeps(self) -> bool:
        """True while snapshots of folders are in memory."""
        return self._resting is not None

    def rest(self) -> None:
        """Drop the snapshots in memory, unless a run needs them."""
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        if not self.begun:
            self._run_aside(self._let_go())

    async def _let_go(self) -> None:
        try:
            await self.folders.rest()
        except FilesError as error:
            log.warning("looks stay in memory: %s", error)

    def _start(self, record: ConversationRecord, paths: Sequence[Path] = (), *, early: bool = False) -> Begun:
        """Start recording with the states of these paths, or with a snapshot of the folder when none are given."""
        before = self.begun.get(record.id)
        step_id = before.step_id if before is not None else self.ids.new()
        task = asyncio.create_task(self._begin(record, step_id, paths, only_known=early))
        now = self.clock.monotonic()
        self.begun[record.id] = look = Begun(step_id, task, now, not paths, early, named=set(paths))
        return look

    async def _begin(
        self, record: ConversationRecord, step_id: str, paths: Sequence[Path] = (), *, only_known: bool = False
    ) -> FileStep | None:
        ending = self._ending.get(record.id)
        if ending is not None:
            await asyncio.wait({ending})
        try:
            if only_known and not await self.folders.knows(record.cwd):
                return None
            await self._close_open(record.id, but=step_id)
            step = FileStep(
                id=step_id,
                conversation_id=record.id,
                kind=StepKind.TURN,
                state=StepState.OPEN,
                seq=record.message_count,
                folder=record.cwd,
                look="",
                began=self.clock.now(),
            )
            step = await self._add_names(step, paths) if paths else await self._add_look(step)
            await self.log.save(step)
        except (FilesError, StorageError) as error:
            log.warning("a turn goes on without a look at its files: %s", error)
            return None
        return step

    async def _widen(self, record: ConversationRecord, before: asyncio.Task[FileStep | None]) -> FileStep | None:
        """A command follows edits: look at the folder, too."""
        step = await before
        if step is None:
            return None
        try:
            wider = await self._add_look(step)
            await self.log.save(wider)
        except StorageError as error:
            log.warning("a turn goes on with a look at its edited files alone: %s", error)
            return step
        return wider

    async def _name(self, before: asyncio.Task[FileStep | None], paths: Sequence[Path]) -> FileStep | None:
        step = await before
        if step is None:
            return None
        try:
            named = await self._add_names(step, paths)
            if named is not step:
                await self.log.save(named)
        except (FilesError, StorageError) as error:
            log.warning("an edited file cannot come back: %s", error)
            return step
        return named

    async def _add_look(self, step: FileStep) -> FileStep:
        look = await self._look(step.folder)
        return replace(step, look=look.id, coverage=join_coverage(step.coverage, look.coverage))

    async def _add_names(self, step: FileStep, paths: Sequence[Path]) -> FileStep:
        named, outside = sort_paths(step.folder, paths)
        states = await self.folders.before_edit(step.folder, named, step.look)
        coverage = join_coverage(step.coverage, coverage_of(states, outside))
        if not states and coverage == step.coverage:
            return step
        found = tuple(FileChange(path, state, state) for path, state in states.items())
        return replace(step, changes=(*step.changes, *found), coverage=coverage)

    async def _look(self, folder: Path) -> FolderSnapshot:
        """Take a snapshot; a folder that cannot be read gives the refusal, for a later rewind to show."""
        try:
            return await self.folders.look(folder)
        except FilesError as error:
            return FolderSnapshot("", Coverage(refusal=str(error)))

    async def _end(self, conversation_id: str, look: Begun) -> None:
        try:
            step = await look.task
            if step is not None:
                await self._finish(step)
                self._run_aside(self._tidy())
        except (FilesError, StorageError) as error:
            log.warning("what a turn changed could not be found out: %s", error)
        finally:
            if self._ending.get(conversation_id) is asyncio.current_task():
                del self._ending[conversation_id]

    async def _close_open(self, conversation_id: str, but: str = "") -> None:
        """Complete turns that a crash cut off: all present differences count as theirs."""
        for step in await self.log.open_steps(conversation_id):
            if step.id != but:
                await self._finish(step)

    async def _finish(self, step: FileStep) -> None:
        await self.log.save(await self._find_changes(step))

    async def _find_changes(self, step: FileStep) -> FileStep:
        """The step with the differences between now and its beginning."""
        changes: tuple[FileChange, ...] = ()
        coverage = step.coverage
        if step.look:
            after = await self.folders.look(step.folder, step.look)
            changes = () if after.id in {"", step.look} else await self.folders.changes(step.look, after.id)
            coverage = replace(coverage, refusal=after.coverage.refusal or coverage.refusal, gone=after.coverage.gone)
        if step.changes:
            now = await self.folders.states(step.folder, [one.path for one in step.changes])
            changes = await self.folders.count(merge_changes(changes, step.changes, now))
        return replace(step, state=StepState.DONE, changes=changes, coverage=coverage)
