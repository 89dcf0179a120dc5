"""Values about rewinding for screens and scripts."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from engine.ports.files import Coverage, FileChange, Restored


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
