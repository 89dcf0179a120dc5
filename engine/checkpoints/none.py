"""`engine.ports.files.Folders` for a session that keeps nothing on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from engine.ports.files import Coverage, FileChange, FilesError, FileState, Look, Restored
from tools.contract import DiffDisplay

REFUSAL = "This session keeps nothing on disk, so files cannot be brought back; the conversation can."


class NoFolders:
    """Covers nothing and says so."""

    async def look(self, folder: Path) -> Look:
        """A look that covers nothing."""
        return Look("", Coverage(refusal=REFUSAL))

    async def warm(self, folder: Path) -> None:
        """Nothing to look at."""

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """None are known."""
        return ()

    async def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """Raises FilesError."""
        raise FilesError(REFUSAL)

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """Nothing to compare."""
        return None

    async def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes."""
        return tuple(changes)

    async def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None = None
    ) -> tuple[Restored, ...]:
        """Raises FilesError."""
        raise FilesError(REFUSAL)

    async def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Nothing to drop."""
        return 0

    async def tidy(self) -> bool:
        """Nothing to do."""
        return False

    async def rest(self) -> None:
        """Nothing is in memory."""

    async def close(self) -> None:
        """Nothing to close."""
