"""File changes of each turn, and branches of conversations: rows of the store, as values."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from engine.ports.files import Coverage, FileChange
from engine.records import ConversationRecord


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


class TurnLog(Protocol):
    """The rows behind rewinding. Every method may raise StorageError."""

    restores: int
    """Number of stored restores of files alone."""

    async def save(self, step: FileStep) -> None:
        """Insert a step, or bring it up to date."""
        ...

    async def steps(self, conversation_id: str) -> list[FileStep]:
        """All of a conversation, oldest first."""
        ...

    async def open_steps(self, conversation_id: str) -> list[FileStep]:
        """Turns in progress and those that a crash cut off, oldest first; called by every turn."""
        ...

    async def restored(self, conversation_id: str, from_seq: int) -> list[FileStep]:
        """The restores of files alone since the message `from_seq`, oldest first."""
        ...

    async def at_rest(self, conversation_id: str) -> bool:
        """True when no run of it is stored as in progress."""
        ...

    async def every_change(self) -> list[FileChange]:
        """The changes of all conversations."""
        ...

    async def open_looks(self) -> list[str]:
        """The looks that open steps of any conversation begin with."""
        ...

    async def unfinished(self) -> list[str]:
        """The titles of conversations in which a restore was cut off and is under way nowhere."""
        ...

    async def prompts(self, conversation_id: str, limit: int) -> list[PromptRow]:
        """Newest first."""
        ...

    async def prompt(self, conversation_id: str, seq: int) -> PromptRow | None:
        """One prompt with its whole text."""
        ...

    async def branch(self, new: NewBranch, step: FileStep | None) -> Rewound:
        """Make a branch, and the step that restores its files, in one transaction; this process owns it."""
        ...

    async def make_head(self, conversation_id: str, instead_of: str, step: FileStep | None = None) -> None:
        """Show this conversation in the list in place of another of its family."""
        ...

    async def family(self, conversation_id: str) -> Sequence[BranchRow]:
        """Every conversation that shares messages with it, oldest first."""
        ...
