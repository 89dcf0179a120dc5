"""`engine.ports.files.Folders` for a session that keeps nothing of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from engine.ports.files import Coverage, FileChange, FilesError, FileState, FolderSnapshot, Restored
from tools.contract import DiffDisplay

SWITCHED_OFF = "Checkpoints are off (checkpoint_total_mb = 0); only the conversation can be rewound."
REFUSAL = "This session saves nothing on disk; only the conversation can be rewound."


class NoFolders:
    """Covers nothing and says so."""

    def __init__(self, refusal: str = REFUSAL) -> None:
        self._refusal = refusal

    async def look(self, folder: Path, since: str = "") -> FolderSnapshot:
        """A look that covers nothing."""
        return FolderSnapshot("", Coverage(refusal=self._refusal))

    async def knows(self, folder: Path) -> bool:
        """Return False: no folder is known."""
        return False

    async def before_edit(self, folder: Path, paths: Sequence[bytes], look: str = "") -> dict[bytes, FileState | None]:
        """Return no states: nothing is kept."""
        return {}

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return no changes: none are known."""
        return ()

    async def states(self, folder: Path, paths: Sequence[bytes]) -> dict[bytes, FileState | None]:
        """Raises FilesError."""
        raise FilesError(self._refusal)

    async def diff(self, change: FileChange) -> DiffDisplay | None:
        """Return None: there is nothing to compare."""
        return None

    async def find_lost(self, states: Sequence[FileState]) -> frozenset[bytes]:
        """Return no contents: nothing was kept."""
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
        """Return 0: there is nothing to drop."""
        return 0

    def use(self) -> None:
        """Return None: nothing is ever kept."""

    async def tidy(self) -> bool:
        """Return False: there is nothing to do."""
        return False

    async def rest(self) -> None:
        """Do nothing: nothing is in memory."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""
