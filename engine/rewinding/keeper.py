"""Watches turns: a look at the folder before the first tool that may change it, another when the run has ended."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine.ports import Clock, Ids, StorageError
from engine.ports.files import Coverage, FilesError, Folders, Look
from engine.ports.turns import FileStep, StepKind, StepState, TurnLog
from engine.records import ConversationRecord

log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds a tool waits for a first look at a large folder; the look goes on beside it."""


@dataclass(slots=True)
class TurnKeeper:
    """The looks of all conversations that are open here. Nothing it does can fail a run."""

    folders: Folders
    log: TurnLog
    clock: Clock
    ids: Ids
    patience: float = PATIENCE
    _beginning: dict[str, asyncio.Task[FileStep | None]] = field(
        default_factory=dict[str, "asyncio.Task[FileStep | None]"]
    )
    _ending: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])

    async def before_tool(self, record: ConversationRecord) -> None:
        """Make sure that this run's first look is taken; gives up waiting after a while, never raises."""
        task = self._beginning.get(record.id)
        if task is None:
            task = asyncio.create_task(self._begin(record))
            self._beginning[record.id] = task
        if not task.done():
            await asyncio.wait({task}, timeout=self.patience)

    def run_ended(self, record: ConversationRecord) -> None:
        """The run is over: find out in the background what it changed."""
        task = self._beginning.pop(record.id, None)
        if task is not None:
            self._ending[record.id] = asyncio.create_task(self._end(record.id, task))

    async def settled(self, conversation_id: str) -> None:
        """Wait until everything that ended here is known, and close what a crash left open."""
        ending = self._ending.get(conversation_id)
        if ending is not None:
            await asyncio.wait({ending})
        if conversation_id not in self._beginning:
            await self._close_open(conversation_id)

    async def close(self) -> None:
        """Wait for what is being found out."""
        if self._ending:
            await asyncio.wait(set(self._ending.values()))
        for task in self._beginning.values():
            task.cancel()

    async def _begin(self, record: ConversationRecord) -> FileStep | None:
        ending = self._ending.get(record.id)
        if ending is not None:
            await asyncio.wait({ending})
        try:
            await self._close_open(record.id)
            began = self.clock.now()
            look = await self._look(record)
            step = FileStep(
                id=self.ids.new(),
                conversation_id=record.id,
                kind=StepKind.TURN,
                state=StepState.OPEN,
                seq=record.message_count,
                folder=record.cwd,
                look=look.id,
                began=began,
                coverage=look.coverage,
            )
            await self.log.save(step)
        except (FilesError, StorageError) as error:
            log.warning("a turn goes on without a look at its files: %s", error)
            return None
        return step

    async def _look(self, record: ConversationRecord) -> Look:
        """A look; a folder that cannot be looked at is said to be so, where a rewind would miss it."""
        try:
            return await self.folders.look(record.cwd)
        except FilesError as error:
            return Look("", Coverage(refusal=str(error)))

    async def _end(self, conversation_id: str, beginning: asyncio.Task[FileStep | None]) -> None:
        try:
            step = await beginning
            if step is not None:
                await self._finish(step)
        except (FilesError, StorageError) as error:
            log.warning("what a turn changed could not be found out: %s", error)
        finally:
            if self._ending.get(conversation_id) is asyncio.current_task():
                del self._ending[conversation_id]

    async def _close_open(self, conversation_id: str) -> None:
        """Turns that a crash cut off: what differs by now counts as theirs."""
        for step in await self.log.steps(conversation_id):
            if step.state is StepState.OPEN:
                await self._finish(step)

    async def _finish(self, step: FileStep) -> None:
        if not step.look:
            await self.log.save(replace(step, state=StepState.DONE))
            return
        after = await self.folders.look(step.folder)
        changes = () if after.id in {"", step.look} else await self.folders.changes(step.look, after.id)
        refusal = after.coverage.refusal
        coverage = replace(step.coverage, refusal=refusal) if refusal else step.coverage
        await self.log.save(replace(step, state=StepState.DONE, changes=changes, coverage=coverage))
