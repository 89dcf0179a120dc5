"""File changes of each turn, and branches of conversations: rows of the store, as values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

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
