"""Old archive and trash go in the background, one after the other, over what others have."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import cast

import pytest

from engine.ports import OwnedElsewhere, StorageError
from engine.store.library import Library
from phoenix_tui.wiring import installation


@dataclass
class Shelves:
    """Three are due; one is another's, one is open here."""

    asked: list[str] = field(default_factory=list[str])
    cutoffs: set[float] = field(default_factory=set[float])
    breaks: bool = False

    async def list_expired(self, before: float) -> list[str]:
        self.cutoffs.add(before)
        return ["old", "theirs", "open", "older"]

    async def remove_expired(self, conversation_id: str, before: float) -> bool:
        self.asked.append(conversation_id)
        self.cutoffs.add(before)
        if conversation_id == "theirs":
            raise OwnedElsewhere(conversation_id, 1)
        if self.breaks and conversation_id == "open":
            raise StorageError("the disk is full")
        return conversation_id != "open"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("FIRST", "REST"):
        monkeypatch.setattr(installation, pause, 0.0)


async def test_each_is_removed_in_turn_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "phoenix_tui.wiring.installation")
    shelves = Shelves()
    await installation.remove_expired(cast("Library", shelves), 30.0)
    assert shelves.asked == ["old", "theirs", "open", "older"]
    assert len(shelves.cutoffs) == 1
    assert caplog.messages == ["permanently deleted 2 conversations archived or deleted more than 30 days ago"]


async def test_a_failure_leaves_the_rest_for_another_start(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "phoenix_tui.wiring.installation")
    shelves = Shelves(breaks=True)
    await installation.remove_expired(cast("Library", shelves), 30.0)
    assert shelves.asked == ["old", "theirs", "open"]
    assert caplog.messages == [
        "expired conversations left for the next start: the disk is full",
        "permanently deleted 1 conversations archived or deleted more than 30 days ago",
    ]


async def test_without_the_setting_nothing_is_looked_for() -> None:
    shelves = Shelves()
    await installation.remove_expired(cast("Library", shelves), 0.0)
    assert shelves.cutoffs == set()
    assert installation.cutoff(2.0, 1_000_000.0) == 1_000_000.0 - 2 * 86_400.0
