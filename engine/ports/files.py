"""Files of a folder at earlier moments, changes of each turn, and branches of conversations."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from engine.records import ConversationRecord
from tools.contract import DiffDisplay


class FileKind(StrEnum):
    """Kinds of covered entries; pipes, sockets and devices are never read."""

    FILE = "f"
    LINK = "l"
    FOLDER = "d"


class FileState(Struct, frozen=True, array_like=True):
    """State of a path. Times are no part of it: a restored file counts as just written."""

    kind: FileKind
    mode: int
    content: bytes = b""
    """SHA-256 of a file's bytes, the target of a link, nothing for a folder."""
    size: int = 0
    kept: bool = True
    """True when it can be restored; a file that is too large is known by size and time only."""


def same_state(one: FileState | None, other: FileState | None) -> bool:
    """True when two states are the same for a restore."""
    if one is None or other is None:
        return one is other
    mode_counts = one.kind is not FileKind.LINK
    return (one.kind, one.content) == (other.kind, other.content) and (not mode_counts or one.mode == other.mode)


class FileChange(Struct, frozen=True, array_like=True):
    """One path, before and after; None where it did not exist. `path` is relative to the folder, as bytes."""

    path: bytes
    before: FileState | None
    after: FileState | None
    added: int = 0
    removed: int = 0
    """Number of removed lines; 0 for both in binary files."""

    @property
    def name(self) -> str:
        """The path as text; may hold anything a file name can."""
        return os.fsdecode(self.path)

    @property
    def only_folder(self) -> bool:
        """True when only a folder comes, goes or changes its mode."""
        states = (self.before, self.after)
        return all(state is None or state.kind is FileKind.FOLDER for state in states)


class Coverage(Struct, frozen=True):
    """Paths that a snapshot does not cover, shown when files are restored."""

    left_out: tuple[str, ...] = ()
    """Folders and files passed over: ignored by .gitignore, of version control, Phoenix's own; at most 20 of them.

    Recreatable folders, such as caches, are not named.
    """
    left_out_count: int = 0
    too_large: tuple[str, ...] = ()
    """Files above the size limit for one file, at most 20 of them."""
    refusal: str = ""
    """Reason in one sentence why commands are not covered at all; else empty."""
    secret: tuple[str, ...] = ()
    """Files that hold keys, whose content is never copied; at most 20 of them."""
    over: int = 0
    """Files whose content is not kept since the folder holds more than its share of the limit, or is unreadable."""
    gone: tuple[str, ...] = ()
    """Paths left out by the snapshot and missing at the end: they cannot be restored. At most 20 of them."""


class CheckpointLimits(Struct, frozen=True):
    """Limits of the kept contents in bytes (settings `checkpoint_file_mb`, `checkpoint_total_mb`)."""

    file: int = 10 * 1024 * 1024
    """A larger file is known by size and time only."""
    total: int = 1024 * 1024 * 1024
    """Bytes of the whole file of contents: above it the oldest goes first. 0: nothing is kept."""

    @property
    def folder(self) -> int:
        """Bytes of one folder as it is now: a quarter, so that no folder drives out all others."""
        return self.total // 4


class CheckpointUse(Struct, frozen=True):
    """Size of the kept contents in bytes, and the limits."""

    used: int
    """Bytes on the disk."""
    limits: CheckpointLimits


class FolderSnapshot(Struct, frozen=True):
    """A folder as it was at one moment; `id` is empty when nothing is covered."""

    id: str
    coverage: Coverage


class Restored(Struct, frozen=True):
    """Result of one requested change; `problem` is empty when it was made."""

    path: bytes
    problem: str = ""


class Folders(Protocol):
    """Remembers how folders were. Every method may raise FilesError."""

    async def look(self, folder: Path, since: str = "") -> FolderSnapshot:
        """Remember the folder as it is now. A file that changes before it is read counts as not kept, so a cancelled
        caller loses no more than that. `since`: an earlier snapshot, which names paths left out then and now missing.
        """
        ...

    async def knows(self, folder: Path) -> bool:
        """True if there is a snapshot of the folder, so that another one reads only later changes."""
        ...

    async def before_edit(self, folder: Path, paths: Sequence[bytes], look: str = "") -> dict[bytes, FileState | None]:
        """States of these paths, kept before a tool that names them; without those that a snapshot kept already."""
        ...

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Differences between two snapshots, with counted lines, by path."""
        ...

    async def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """Present states of these paths; contents are kept, so that they can be restored."""
        ...

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """The change as a diff; None where it is no text or not kept."""
        ...

    async def find_lost(self, states: Sequence[FileState]) -> frozenset[bytes]:
        """The contents of these that were kept and made room for newer ones since."""
        ...

    async def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes with their lines counted."""
        ...

    async def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None = None
    ) -> tuple[Restored, ...]:
        """Make these changes; a path that is neither `before` nor `after` any more is left as it is.

        `made` is called, from another thread, with the number done.
        """
        ...

    async def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Drop contents that neither these changes, nor these snapshots, nor the newest snapshot of a folder need;
        returns bytes freed.

        Contents stored in the last day stay: another process may be about to name them.
        """
        ...

    def use(self) -> CheckpointUse | None:
        """Size of the kept contents; None for folders that never keep any."""
        ...

    async def tidy(self) -> bool:
        """Do a part of the postponed work; False when none is left."""
        ...

    async def rest(self) -> None:
        """Keep nothing in memory: nothing has run for a while."""
        ...

    async def close(self) -> None:
        """Complete begun work and close."""
        ...


class FilesError(Exception):
    """Files cannot be looked at or restored; the message is one sentence that names the fix."""


class StepKind(StrEnum):
    """Reasons of file changes."""

    TURN = "turn"
    """Tools of a turn ran."""
    RESTORE = "restore"
    """Files went back, the conversation stayed."""
    BRANCH = "branch"
    """Files followed the conversation to another branch: no part of its own changes."""


class StepState(StrEnum):
    """Progress of a step."""

    OPEN = "open"
    """A turn under way, or one that a crash cut off."""
    RESTORING = "restoring"
    """`changes` are being made; a crash leaves some made and some not."""
    DONE = "done"


class FileStep(Struct, frozen=True):
    """Files that changed between two moments of a conversation."""

    id: str
    conversation_id: str
    kind: StepKind
    state: StepState
    seq: int
    """The newest message when it began."""
    folder: Path
    look: str
    """The look before it; empty where nothing is covered."""
    began: float
    changes: tuple[FileChange, ...] = ()
    coverage: Coverage = Coverage()
    undone_from: str = ""
    """Conversation that a branch left, so that undoing goes back to it."""
    target_seq: int = 0
    """Prompt before which a restore or a branch went back."""


class PromptRow(Struct, frozen=True):
    """A message of the user that can be gone back to; `text` is its beginning."""

    seq: int
    at: float
    text: str
    image_ids: tuple[str, ...] = ()


class BranchRow(Struct, frozen=True):
    """One conversation of a family."""

    id: str
    title: str
    branch_of: str
    """Empty for the first of the family."""
    branch_seq: int
    """Number of messages of `branch_of` that it shares."""
    message_count: int
    updated_at: float
    newest_prompt: str
    first_own_prompt: str
    archived: bool = False
    deleted: bool = False


class Rewound(Struct, frozen=True):
    """Stored result of a rewind: the new branch, and its images by their old ids."""

    record: ConversationRecord
    images: dict[str, str]


class NewBranch(Struct, frozen=True):
    """A branch to be made: a copy up to `up_to_seq` that takes the place of its source."""

    source_id: str
    new_id: str
    up_to_seq: int
    draft: str
    at: float
