"""Indexing of older messages while the app runs, despite any obstacle."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from engine.ports import StorageError
from engine.ports.storage import IndexProgress
from engine.store.library import Library
from phoenix_tui.wiring import services
from tests.support.waiting import PATIENCE


@dataclass
class Slices:
    """Three slices; the second one is refused once."""

    calls: list[str] = field(default_factory=list[str])

    cleared: int = 0

    async def clear_partial(self) -> None:
        self.cleared += 1

    async def index_older(self) -> IndexProgress:
        self.calls.append("asked")
        if len(self.calls) == 2:
            raise StorageError("Another Phoenix keeps the database busy: try again in a moment.")
        return IndexProgress(len(self.calls) - 1, 3)


async def test_slices_follow_each_other_to_the_end_over_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("FIRST", "REST", "AGAIN"):
        monkeypatch.setattr(services, pause, 0.0)
    library = Slices()
    await asyncio.wait_for(services.index_older(cast("Library", library)), PATIENCE)
    assert (library.cleared, len(library.calls)) == (1, 4)
