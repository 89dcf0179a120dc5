"""A store on a real file, closed after the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.store import Store, StorePaths, open_store


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    return StorePaths.under(tmp_path / "phoenix")


@pytest.fixture
async def store(paths: StorePaths) -> AsyncIterator[Store]:
    opened = await open_store(paths)
    yield opened
    await opened.close()
