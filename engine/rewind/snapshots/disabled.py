"""`engine.ports.files.Folders` for a session that keeps nothing of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from engine.ports.files import Coverage, FileChange, FilesError, FileState, FolderSnapshot, Restored
from tools.contract import DiffDisplay

SWITCHED_OFF = "Checkpoints are off (checkpoint_total_mb = 0): the conversation can go back, files cannot."
REFUSAL = "This session keeps nothing on disk, so files cannot be brought back; the conversation can."


class NoFolders:
    """Covers nothing and says so."""

    def __init__(self, refusal: str = REFUSAL) -> None:
        self._refusal = refusal

    async def look(self, folder: Path, since: str = "") -> FolderSnapshot:
        """A look that covers nothing."""
        return FolderSnapshot("", Coverage(refusal=self._refusal))

    async def knows(self, folder: Path) -> bool:
        """No folder is known."""
        return False

    async def before_edit(self, folder: Path, paths: Sequence[bytes], look: str = "") -> dict[bytes, FileState | None]:
        """Nothing is kept."""
        return {}

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """None are known."""
        return ()

    async def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """Raises FilesError."""
        raise FilesError(self._refusal)

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """Nothing to compare."""
        return None

    async def lost(self, states: Sequence[FileState]) -> frozenset[bytes]:
        """Nothing was kept."""
        return frozenset()

    async def count(self, changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
        """The same changes."""
        return tuple(changes)

    async def restore(
        self, folder: Path, changes: Sequence[FileChange], made: Callable[[int], None] | None = None
    ) -> tuple[Restored, ...]:
        """Raises FilesError."""
        raise FilesError(self._refusal)

    async def keep_only(self, changes: Sequence[FileChange], looks: Sequence[str]) -> int:
        """Nothing to drop."""
        return 0

    def use(self) -> None:
        """Nothing is ever kept."""

    async def tidy(self) -> bool:
        """Nothing to do."""
        return False

    async def rest(self) -> None:
        """Nothing is in memory."""

    async def close(self) -> None:
        """Nothing to close."""
