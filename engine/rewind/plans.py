"""Files that a rewind restores, from the steps of a conversation; nothing here touches a disk."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.ports.files import FileChange, FileState, same_state
from engine.ports.turns import FileStep, StepKind
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
