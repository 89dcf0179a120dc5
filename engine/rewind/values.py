"""What a screen or a script is told about rewinding."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from engine.ports.files import Coverage, FileChange, Restored


class RewindScope(StrEnum):
    """What goes back."""

    BOTH = "both"
    CONVERSATION = "conversation"
    FILES = "files"


class RewindPoint(Struct, frozen=True):
    """A prompt that can be gone back to, and what its turn did to files."""

    seq: int
    at: float
    text: str
    """Its beginning."""
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
    """Everything that can be gone back to, newest first."""

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
    """Not empty when it is not as this conversation left it: why it is left alone unless asked for."""
    possible: bool = True


class Preview(Struct, frozen=True):
    """What restoring files would do to the disk."""

    files: tuple[PreviewFile, ...]
    coverage: Coverage
    refusal: str = ""
    """Not empty when no file can be restored: why."""


class ChangedFile(Struct, frozen=True):
    """One path: as the conversation found it, and as it is now."""

    change: FileChange
    remark: str = ""
    """Not empty where somebody else had a hand in it."""


class Changed(Struct, frozen=True):
    """What a conversation did to its folder; what was changed and changed back is no part of it."""

    files: tuple[ChangedFile, ...]
    coverage: Coverage
    refusal: str = ""
    """Not empty when it cannot be told: why."""


class Done(Struct, frozen=True):
    """What a rewind or its undoing came to."""

    conversation_id: str
    """The one to show now."""
    restored: int = 0
    problems: tuple[Restored, ...] = ()
    """Files that stayed as they were, and why."""
    text: str = ""
    """The prompt that was taken back."""
    image_ids: tuple[str, ...] = ()
