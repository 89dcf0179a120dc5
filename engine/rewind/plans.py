"""Files that a rewind restores, from the steps of a conversation; nothing here touches a disk."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from engine.ports.files import FileChange, FileState, same_state
from engine.ports.turns import FileStep, StepKind, StepState
from engine.rewind.values import ChangedFile, PreviewFile

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


def wanted(steps: Sequence[FileStep], seq: int) -> tuple[PathChange, ...]:
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


class Undoing(Struct, frozen=True):
    """Rewinds to be taken back together, the oldest first: one, or all that were made since a conversation was left."""

    steps: tuple[FileStep, ...]
    back_to: str
    """Conversation to show; empty: the one it is undone in stays."""

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """Net change of each file, from the first of them to the last."""
        net: dict[bytes, FileChange] = {}
        for step in self.steps:
            for change in step.changes:
                first = net[change.path].before if change.path in net else change.before
                net[change.path] = FileChange(change.path, first, change.after, change.removed, change.added)
        return tuple(net[path] for path in sorted(net))

    @property
    def redoes(self) -> bool:
        """True when the rewind was an undo itself."""
        return bool(self.steps[-1].undoes)

    @property
    def ids(self) -> str:
        """The ids of all, for the step that takes them back."""
        return " ".join(step.id for step in self.steps)


def undoable(rewinds: Sequence[FileStep], here: str, there: Collection[str]) -> Undoing | None:
    """The rewind that is undone next in the conversation `here`; None without any.

    The newest that still counts comes first, then the one before it, from whichever side; once none is left, the last
    undo can be taken back. Turns in between keep it from nothing, for its files are looked at.

    Args:
        rewinds: steps of the whole family, oldest first.
        there: ids of its conversations that exist.
    """
    counted = [one for one in rewinds if one.state is StepState.DONE and _is_rewind(one)]
    effective = in_effect(counted)
    for undos in (False, True):
        own = [one for one in effective if bool(one.undoes) is undos]
        for step in reversed(own):
            if (found := _undoing(step, own, here, there)) is not None:
                return found
    return None


def in_effect(rewinds: Sequence[FileStep]) -> list[FileStep]:
    """Rewinds that were not taken back, oldest first; what takes one back can be taken back as well."""
    found: list[FileStep] = []
    gone: set[str] = set()
    for step in reversed(rewinds):
        if step.id not in gone:
            found.insert(0, step)
            gone.update(step.undoes.split())
    return found


def _is_rewind(step: FileStep) -> bool:
    """False for a turn, and for a branch that was only shown again."""
    match step.kind:
        case StepKind.TURN:
            return False
        case StepKind.RESTORE:
            return bool(step.changes)
        case StepKind.BRANCH:
            return bool(step.undone_from) and bool(step.changes or step.target_seq or step.undoes)
        case _:
            assert_never(step.kind)


def _undoing(step: FileStep, effective: Sequence[FileStep], here: str, there: Collection[str]) -> Undoing | None:
    if step.conversation_id == here:
        back_to = step.undone_from if step.undone_from in there else ""
        return Undoing((step,), back_to) if back_to or step.changes else None
    if step.undone_from != here:
        return None
    chain, place = [step], step.conversation_id
    for later in effective[effective.index(step) + 1 :]:
        if place in {later.undone_from, later.conversation_id if later.kind is StepKind.RESTORE else ""}:
            chain.append(later)
            place = later.conversation_id
    undoing = Undoing(tuple(chain), "")
    return undoing if undoing.changes else None


def turned_around(changes: Sequence[FileChange]) -> tuple[PathChange, ...]:
    """Reverse these changes."""
    return tuple(PathChange(change.path, change.after, change.before) for change in changes)


def without(planned: Sequence[PathChange], lost: Collection[bytes]) -> list[PathChange]:
    """The same changes; those whose contents were dropped for newer ones are marked as not kept."""
    return [
        replace(one, target=replace(one.target, kept=False))
        if one.target is not None and one.target.content in lost
        else one
        for one in planned
    ]


def previewed(planned: Sequence[PathChange], now: Mapping[bytes, FileState | None]) -> list[PreviewFile]:
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


def as_done(files: Sequence[PreviewFile]) -> tuple[ChangedFile, ...]:
    """The changes that restoring all of these files would reverse, in their original direction."""
    return tuple(
        ChangedFile(
            FileChange(one.change.path, one.change.after, one.change.before, one.change.removed, one.change.added),
            one.conflict,
        )
        for one in files
    )
