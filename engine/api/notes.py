"""Interface of the notes for front ends (`engine.memory`). Methods raise NoteRefused, OSError."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.memory.memory import NoteRow


class NotesApi(Protocol):
    """The notes of the user and of every project."""

    async def project(self, cwd: Path) -> str:
        """The scope of the project that a folder belongs to."""
        ...

    async def rows(self, scope: str) -> Sequence[NoteRow]:
        """The newest files of a scope."""
        ...

    async def read(self, path: str) -> str:
        """The text of a file."""
        ...

    async def remove(self, path: str) -> bytes:
        """Delete a file; gives its content for `put_back`."""
        ...

    async def put_back(self, path: str, content: bytes) -> None:
        """Make a file with this content; raises FileExistsError where there is one."""
        ...

    async def place(self, path: str) -> Path:
        """The file itself, for an editor."""
        ...
