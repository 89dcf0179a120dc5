"""Folders for tests of checkpoints."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from engine.rewind.snapshots.folders import CheckpointFolders


@pytest.fixture
def fresh_folder(tmp_path: Path) -> Callable[[], Path]:
    """A new empty folder at every call."""
    numbers = itertools.count()

    def make() -> Path:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return folder

    return make


@pytest.fixture
async def folders(tmp_path: Path) -> AsyncIterator[CheckpointFolders]:
    """Looks at folders, kept in a file of this test."""
    made = CheckpointFolders(tmp_path / "kept" / "contents.db", (tmp_path / "data",))
    yield made
    await made.close()
