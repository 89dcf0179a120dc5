"""Interface of the index of the notes, with the values that cross it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct


class NoteFile(Struct, frozen=True):
    """One dated file of notes."""

    path: str
    """Path inside the memory folder, such as `user/2026-11-24.md`."""
    size: int
    changed: float
    """Time of its last change; in the index 0 where a later change could bear the same time."""


class Passage(Struct, frozen=True):
    """A part of a file of notes that is found as one."""

    line: int
    """Number of its first line, from 1."""
    text: str


ReadNote: TypeAlias = tuple[NoteFile, Sequence[Passage]]
"""A file and its passages."""


class NoteHit(Struct, frozen=True):
    """A passage that matches a search."""

    path: str
    line: int
    text: str


class NoteIndex(Protocol):
    """Full-text index of the notes, and the marks of flushed conversations. Every method may raise StorageError."""

    async def list_known(self, scope: str) -> Mapping[str, NoteFile]:
        """The indexed files of one scope, by path."""
        ...

    async def update(self, scope: str, files: Sequence[ReadNote], gone: Sequence[str]) -> None:
        """Replace the passages of these files, and remove those of the files that are gone, in one transaction."""
        ...

    async def search(self, words: Sequence[str], scopes: Sequence[str], limit: int) -> Sequence[NoteHit]:
        """The best passages with at least one of the words, or with one that begins with it."""
        ...

    async def flush_is_due(self, conversation_id: str) -> bool:
        """True when no notes were written since the newest summary of a conversation (SPEC CLAW-40)."""
        ...

    async def mark_flushed(self, conversation_id: str) -> None:
        """Write no further notes before the next summary of a conversation."""
        ...
