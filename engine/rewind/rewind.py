"""Rewinding of one conversation: list, preview, do, undo, complete an interrupted one; its values."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.machine.messages import Origin, Role
from engine.machine.states import State, is_busy
from engine.ports import Clock, Ids
from engine.ports.files import (
    BranchRow,
    Coverage,
    FileChange,
    FilesError,
    FileState,
    FileStep,
    Folders,
    NewBranch,
    Restored,
    StepKind,
    StepState,
    same_state,
)
from engine.records import ConversationRecord, StoredMessage
from engine.rewind.turn_recorder import TurnRecorder
from tools.clean import clean_line
from tools.contract import DiffDisplay

if TYPE_CHECKING:
    from engine.store.turns import TurnLog


class RewindScope(StrEnum):
    """Parts that a rewind restores."""

    BOTH = "both"
    CONVERSATION = "conversation"
    FILES = "files"


class RewindPoint(Struct, frozen=True):
    """A prompt to go back to, and the file changes of its turn."""

    seq: int
    at: float
    text: str
    """First characters of the prompt."""
    images: int
    files: tuple[FileChange, ...]
    coverage: Coverage


class Takeback(Struct, frozen=True):
    """The last rewind, which can be undone."""

    step_id: str
    at: float
    files: int
    branch: str
    """The conversation it goes back to; empty where only files were restored."""


class RewindList(Struct, frozen=True):
    """All points to go back to, newest first."""

    folder: Path
    points: tuple[RewindPoint, ...]
    takeback: Takeback | None
    unfinished: int
    """Files of a restore that a crash cut off; 0: none."""
    branches: int
    """Conversations of the family, this one included."""


class PreviewFile(Struct, frozen=True):
    """One path: as it is now, and as it would be."""

    change: FileChange
    conflict: str = ""
    """Reason why it is skipped unless requested, when others changed it since; else empty."""
    possible: bool = True


class Preview(Struct, frozen=True):
    """Changes that restoring files would make on the disk."""

    files: tuple[PreviewFile, ...]
    coverage: Coverage
    refusal: str = ""
    """Reason why no file can be restored; else empty."""


class ChangedFile(Struct, frozen=True):
    """One path: as the conversation found it, and as it is now."""

    change: FileChange
    remark: str = ""
    """Remark about changes by others; empty without any."""


class Changed(Struct, frozen=True):
    """Changes of a conversation to its folder, without those that it reversed itself."""

    files: tuple[ChangedFile, ...]
    coverage: Coverage
    refusal: str = ""
    """Reason why it is unknown; empty when it is known."""


class Done(Struct, frozen=True):
    """Result of a rewind or its undoing."""

    conversation_id: str
    """The one to show now."""
    restored: int = 0
    problems: tuple[Restored, ...] = ()
    """Files that stayed as they were, and why."""
    text: str = ""
    """The prompt that was taken back."""
    image_ids: tuple[str, ...] = ()


CHANGED_SINCE = "changed since then by someone else"
CHANGED_BETWEEN = "also changed by someone else between two turns"
NOT_KEPT = "its earlier content was not saved"


class PathChange(Struct, frozen=True):
    """One path: how this conversation left it, and how it was before."""

    path: bytes
    expected: FileState | None
    target: FileState | None
    between: bool = False
    """True when another author changed it between two steps."""


def plan_rewind(steps: Sequence[FileStep], seq: int) -> tuple[PathChange, ...]:
    """Reverse the changes to files from the prompt `seq` on.

    A step that followed the conversation to another branch is no change of this one: it records the files as left, not
    as they were. Only before a turn is a gap the work of others: a restore begins with the shown state.
    """
    found: dict[bytes, PathChange] = {}
    for step in steps:
        if step.seq < seq:
            continue
        for change in step.changes:
            known = found.get(change.path)
            if known is not None:
                gap = step.kind is StepKind.TURN and not same_state(known.expected, change.before)
                between = known.between or gap
                found[change.path] = PathChange(change.path, change.after, known.target, between)
            elif step.kind is not StepKind.BRANCH:
                found[change.path] = PathChange(change.path, change.after, change.before)
    return tuple(found[path] for path in sorted(found))


def reverse_changes(changes: Sequence[FileChange]) -> tuple[PathChange, ...]:
    """Reverse these changes."""
    return tuple(PathChange(change.path, change.after, change.before) for change in changes)


def mark_lost(planned: Sequence[PathChange], lost: Collection[bytes]) -> list[PathChange]:
    """The same changes; those whose contents were dropped for newer ones are marked as not kept."""
    return [
        replace(one, target=replace(one.target, kept=False))
        if one.target is not None and one.target.content in lost
        else one
        for one in planned
    ]


def preview_changes(planned: Sequence[PathChange], now: Mapping[bytes, FileState | None]) -> list[PreviewFile]:
    """Changes still to be made, given the present states; paths in the desired state are left out."""
    files: list[PreviewFile] = []
    for one in planned:
        present = now.get(one.path)
        if same_state(present, one.target):
            continue
        change = FileChange(one.path, present, one.target)
        if one.target is not None and not one.target.kept:
            files.append(PreviewFile(change, NOT_KEPT, possible=False))
        elif not same_state(present, one.expected):
            files.append(PreviewFile(change, CHANGED_SINCE))
        elif one.between:
            files.append(PreviewFile(change, CHANGED_BETWEEN))
        else:
            files.append(PreviewFile(change))
    return files


def describe_done(files: Sequence[PreviewFile]) -> tuple[ChangedFile, ...]:
    """The changes that restoring all of these files would reverse, in their original direction."""
    return tuple(
        ChangedFile(
            FileChange(one.change.path, one.change.after, one.change.before, one.change.removed, one.change.added),
            one.conflict,
        )
        for one in files
    )


MOST_POINTS = 1_000
ANSWERING = 20.0
"""Seconds for a folder to report its contents; 1 GB is read in less."""
BUSY = "The agent is working; stop it with Esc before you rewind."
NO_PROMPT = "That prompt is no longer in this conversation."
NOT_FOUND_OUT = "File changes cannot be determined now; check that the folder exists."
NO_ANSWER = "The folder does not respond; only the conversation can be rewound now."
UNFINISHED = "A restore of files was interrupted; finish or undo it first."


class CannotRewind(Exception):
    """Raised when nothing was changed; the message is one sentence that names the fix."""


class Rewinding(Struct, eq=False):
    """All conversations of one store."""

    folders: Folders
    log: TurnLog
    recorder: TurnRecorder
    clock: Clock
    ids: Ids
    answering: float = ANSWERING

    async def points(self, record: ConversationRecord) -> RewindList:
        """List the points to go back to. Raises StorageError, FilesError."""
        await self.recorder.settle(record.id)
        steps = await self._steps(record.id)
        prompts = await self.log.prompts(record.id, MOST_POINTS)
        points: list[RewindPoint] = []
        turns = sorted((one for one in steps if one.kind is StepKind.TURN), key=lambda one: one.seq)
        for prompt in prompts:
            own: list[FileStep] = []
            while turns and turns[-1].seq >= prompt.seq:
                own.insert(0, turns.pop())
            files = tuple(change for one in own for change in one.changes)
            coverage = own[-1].coverage if own else Coverage()
            points.append(RewindPoint(prompt.seq, prompt.at, prompt.text, len(prompt.image_ids), files, coverage))
        unfinished = sum(len(one.changes) for one in steps if one.state is StepState.RESTORING)
        family = await self.log.family(record.id)
        last = await self._find_newest(record.id, steps)
        takeback = None if last is None else Takeback(last.id, last.began, len(last.changes), last.undone_from)
        return RewindList(record.cwd, tuple(points), takeback, unfinished, len(family))

    async def read_changes(self, record: ConversationRecord) -> Changed:
        """Changes of this conversation to its folder, including the current run. Raises StorageError."""
        await self.recorder.settle(record.id)
        running = await self.recorder.so_far(record.id)
        steps = await self._steps(record.id)
        steps = [running if running is not None and one.id == running.id else one for one in steps]
        preview = await self._preview(record.cwd, plan_rewind(steps, 0), _coverage(steps, 0))
        return Changed(describe_done(preview.files), preview.coverage, preview.refusal)

    async def preview(self, record: ConversationRecord, seq: int) -> Preview:
        """Preview of the file changes when rewinding to before the prompt `seq`. Raises StorageError."""
        await self.recorder.settle(record.id)
        steps = await self._steps(record.id)
        return await self._preview(record.cwd, plan_rewind(steps, seq), _coverage(steps, seq))

    async def _steps(self, conversation_id: str) -> list[FileStep]:
        """File changes of each turn; none yet for the open one."""
        steps = await self.log.steps(conversation_id)
        return [replace(one, changes=()) if one.state is StepState.OPEN else one for one in steps]

    async def preview_undo(self, record: ConversationRecord) -> Preview:
        """Preview of the file changes when undoing the last rewind. Raises StorageError, CannotRewind."""
        step = await self._find_last(record.id)
        return await self._preview(record.cwd, reverse_changes(step.changes), step.coverage)

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """One change in full; None where it is no text."""
        return await self.folders.diff(change)

    async def rewind(
        self, record: ConversationRecord, state: State, seq: int, scope: RewindScope, overwrite: Collection[bytes] = ()
    ) -> Done:
        """Rewind to before the prompt `seq`; files changed by others stay, except for those in `overwrite`.

        Raises:
            CannotRewind: nothing was changed.
            StorageError, FilesError: it could not be done, or not to its end.
        """
        await self._check(record, state)
        prompt = await self.log.prompt(record.id, seq)
        if prompt is None:
            raise CannotRewind(NO_PROMPT)
        changes: tuple[FileChange, ...] = ()
        if scope is not RewindScope.CONVERSATION:
            changes = _choose_changes(await self.preview(record, seq), overwrite)
        if scope is RewindScope.FILES:
            step = self._build_step(record, record.id, StepKind.RESTORE, record.message_count, changes, seq)
            await _refuse_busy(self.log, record.id)
            await self.log.save(step)
            return await self._restore(step, Done(record.id))
        new_id = self.ids.new()
        step = self._build_step(record, new_id, StepKind.BRANCH, seq - 1, changes, seq)
        await _refuse_busy(self.log, record.id)
        new = NewBranch(record.id, new_id, seq - 1, prompt.text, step.began)
        images = (await self.log.branch(new, step)).images
        image_ids = tuple(images[one] for one in prompt.image_ids if one in images)
        return await self._restore(step, Done(new_id, text=prompt.text, image_ids=image_ids))

    async def undo(self, record: ConversationRecord, state: State, overwrite: Collection[bytes] = ()) -> Done:
        """Take the last rewind back: its files, and the conversation that was left. Raises like `rewind`."""
        await self._check(record, state)
        last = await self._find_last(record.id)
        preview = await self._preview(record.cwd, reverse_changes(last.changes), last.coverage)
        if preview.refusal and last.kind is StepKind.RESTORE:
            raise CannotRewind(preview.refusal)
        changes = _choose_changes(preview, overwrite) if not preview.refusal else ()
        if last.kind is StepKind.RESTORE:
            step = self._build_step(record, record.id, StepKind.RESTORE, record.message_count, changes, last.target_seq)
            await _refuse_busy(self.log, record.id)
            await self.log.save(step)
            return await self._restore(step, Done(record.id))
        return await self._switch(record, last.undone_from, changes)

    async def switch(self, record: ConversationRecord, state: State, to: str) -> Done:
        """Show another branch of the family in place of this one; files stay as they are. Raises like `rewind`."""
        await self._check(record, state)
        return await self._switch(record, to, ())

    async def branches(self, record: ConversationRecord) -> Sequence[BranchRow]:
        """The family of a conversation, oldest first. Raises StorageError."""
        return await self.log.family(record.id)

    async def finish(self, record: ConversationRecord, *, take_back: bool = False) -> Done:
        """Complete restores that a crash cut off: make the missing changes, or reverse the made ones. Raises
        FilesError.
        """
        done = Done(record.id)
        for step in await self.log.steps(record.id):
            if step.state is not StepState.RESTORING:
                continue
            if not take_back:
                done = await self._restore(step, done)
                continue
            back = tuple(FileChange(one.path, one.after, one.before) for one in step.changes)
            outcome = await self.folders.restore(step.folder, back)
            await self.log.save(replace(step, state=StepState.DONE, changes=()))
            done = replace(done, restored=_count_made(back, outcome), problems=_find_problems(outcome))
        return done

    def why_not(self, state: State) -> str:
        """Reason why no rewind is possible now; empty when it is."""
        return BUSY if is_busy(state) else ""

    async def cut_off(self) -> str:
        """One sentence where a crash cut a restore off, empty elsewhere. Raises StorageError."""
        titles = await self.log.list_unfinished()
        if not titles:
            return ""
        names = ", ".join(f"“{title or 'New conversation'}”" for title in titles)
        return f"A restore of files was interrupted in {names}; Esc Esc there finishes or undoes it."

    async def collect(self) -> int:
        """Drop contents that no conversation needs; returns the bytes freed. Raises StorageError, FilesError."""
        return await self.folders.keep_only(await self.log.every_change(), await self.log.open_looks())

    async def close(self) -> None:
        """Wait for pending snapshots, then close the file of contents."""
        await self.recorder.close()
        await self.folders.close()

    async def _switch(self, record: ConversationRecord, to: str, changes: tuple[FileChange, ...]) -> Done:
        newest = max((row.message_count for row in await self.log.family(record.id) if row.id == to), default=-1)
        if newest < 0:
            raise CannotRewind("That branch was deleted; /resume opens another conversation.")
        step = self._build_step(record, to, StepKind.BRANCH, newest, changes, 0)
        await _refuse_busy(self.log, record.id)
        await self.log.make_head(to, record.id, step)
        return await self._restore(step, Done(to))

    async def _check(self, record: ConversationRecord, state: State) -> None:
        if reason := self.why_not(state):
            raise CannotRewind(reason)
        await self.recorder.settle(record.id)
        if any(step.state is StepState.RESTORING for step in await self.log.steps(record.id)):
            raise CannotRewind(UNFINISHED)

    async def _find_last(self, conversation_id: str) -> FileStep:
        step = await self._find_newest(conversation_id, await self.log.steps(conversation_id))
        if step is None:
            raise CannotRewind("There is no rewind to undo.")
        return step

    async def _find_newest(self, conversation_id: str, steps: Sequence[FileStep]) -> FileStep | None:
        """The newest rewind that can be undone here: of this conversation, or one that left it for another branch."""
        own, left = _find_rewind(steps), await self.log.find_departure(conversation_id)
        if left is None or not left.changes or (own is not None and own.began >= left.began):
            return own
        return replace(left, kind=StepKind.RESTORE, undone_from="")  # here it restored files alone

    async def _preview(self, folder: Path, planned: tuple[PathChange, ...], coverage: Coverage) -> Preview:
        if not planned:
            return Preview((), coverage, coverage.refusal)
        try:
            async with asyncio.timeout(self.answering):
                now = await self.folders.states(folder, [one.path for one in planned])
                lost = await self.folders.find_lost([one.target for one in planned if one.target is not None])
                files = preview_changes(mark_lost(planned, lost), now)
                counted = await self.folders.count([one.change for one in files])
        except TimeoutError:
            return Preview((), coverage, NO_ANSWER)
        except FilesError as error:
            return Preview((), coverage, str(error))
        return Preview(tuple(replace(one, change=new) for one, new in zip(files, counted, strict=True)), coverage)

    def _build_step(
        self,
        record: ConversationRecord,
        conversation_id: str,
        kind: StepKind,
        seq: int,
        changes: tuple[FileChange, ...],
        target: int,
    ) -> FileStep:
        return FileStep(
            id=self.ids.new(),
            conversation_id=conversation_id,
            kind=kind,
            state=StepState.RESTORING if changes else StepState.DONE,
            seq=seq,
            folder=record.cwd,
            look="",
            began=self.clock.now(),
            changes=changes,
            undone_from=record.id if kind is StepKind.BRANCH else "",
            target_seq=target,
        )

    async def _restore(self, step: FileStep, done: Done) -> Done:
        """Make the changes of a stored step, then store the result."""
        if not step.changes:
            return done
        outcome = await self.folders.restore(step.folder, step.changes)
        failed = {one.path for one in outcome if one.problem}
        made = tuple(change for change in step.changes if change.path not in failed)
        await self.log.save(replace(step, state=StepState.DONE, changes=made))
        return replace(done, restored=_count_made(step.changes, outcome), problems=_find_problems(outcome))


async def _refuse_busy(log: TurnLog, conversation_id: str) -> None:
    """Looking at files takes its time: a queued message may have begun a run since."""
    if not await log.at_rest(conversation_id):
        raise CannotRewind(BUSY)


def _choose_changes(preview: Preview, overwrite: Collection[bytes]) -> tuple[FileChange, ...]:
    if preview.refusal:
        raise CannotRewind(preview.refusal)
    files = (one for one in preview.files if one.possible and (not one.conflict or one.change.path in overwrite))
    return tuple(one.change for one in files)


def _find_rewind(steps: Sequence[FileStep]) -> FileStep | None:
    """The newest rewind; a turn that came after it keeps it from nothing, its files are looked at."""
    rewinds = [one for one in steps if one.kind is not StepKind.TURN and one.state is StepState.DONE]
    if not rewinds:
        return None
    last = rewinds[-1]
    if not (last.undone_from if last.kind is StepKind.BRANCH else last.changes):
        return None
    return last


def _coverage(steps: Sequence[FileStep], seq: int) -> Coverage:
    """Files that the turns from `seq` on did not cover, as of the newest snapshot."""
    turns = [one for one in steps if one.kind is StepKind.TURN and one.seq >= seq]
    if any(one.state is StepState.OPEN for one in turns):
        return Coverage(refusal=NOT_FOUND_OUT)
    own = [one.coverage for one in turns]
    refused = [one for one in own if one.refusal]
    return (refused or own or [Coverage()])[-1]


def _count_made(changes: Sequence[FileChange], outcome: Sequence[Restored]) -> int:
    """Number of files and links restored; folders come and go with their contents."""
    failed = {one.path for one in outcome if one.problem}
    return sum(not one.only_folder for one in changes if one.path not in failed)


def _find_problems(outcome: Sequence[Restored]) -> tuple[Restored, ...]:
    return tuple(one for one in outcome if one.problem)


NAMED: Final = 20
"""Files that are named; of more the number is given."""


async def describe_restored_files(log: TurnLog, conversation_id: str, rows: Sequence[StoredMessage]) -> str:
    """The note for the turn that `rows` end with, which follows a restore; empty where none came ahead of it.

    It goes with every request of that turn and is stored in no message (SPEC UNI-33). Raises StorageError.
    """
    asked = next((place for place in reversed(range(len(rows))) if rows[place].origin is Origin.HUMAN), len(rows))
    replies = (rows[place].seq for place in reversed(range(asked)) if rows[place].role is Role.ASSISTANT)
    return format_note(
        find_changed_paths(await log.list_restores(conversation_id, next(replies, rows[0].seq - 1 if rows else 0)))
    )


def find_changed_paths(steps: Sequence[FileStep]) -> list[str]:
    """The files that are another than before these restores; one that was undone changed nothing."""
    net: dict[str, tuple[FileState | None, FileState | None]] = {}
    for step in steps:
        for change in step.changes:
            if not change.only_folder:
                first = net[change.name][0] if change.name in net else change.before
                net[change.name] = (first, change.after)
    return sorted(name for name, (before, after) in net.items() if not same_state(before, after))


def format_note(names: Sequence[str]) -> str:
    """One note, empty without files."""
    if not names:
        return ""
    listed = ", ".join(clean_line(name) for name in names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (
        f"[The user put files back to an earlier state since your last reply: {listed}{more}. What you read or wrote"
        " of them before may no longer be there: read them again before you rely on it.]"
    )
