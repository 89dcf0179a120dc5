"""A booth whose machine is the same everywhere: clocks, home, terminal, language."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from phoenix_tui.workspace import draft_store, widgets
from tests.snapshots.booth import PATIENCE, RENEW, SCREENS, Booth
from tests.support.fake_engine import FakeEngine
from tests.support.still_time import stop_time

KEPT: Final = ("PATH", "TMPDIR", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "COVERAGE_PROCESS_START", RENEW)
MACHINE: Final = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "TZ": "UTC", "USER": "robin"}


@pytest.fixture
def still_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Hide this machine, day and user; yields the home."""
    home = tmp_path / "robin"
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    for name in list(os.environ):
        if name not in kept:
            monkeypatch.delenv(name)
    for name, value in {**MACHINE, "HOME": str(home)}.items():
        monkeypatch.setenv(name, value)
    time.tzset()
    stop_time(monkeypatch)
    monkeypatch.setattr(widgets, "TOAST_SECONDS", PATIENCE * 10)  # notices stay until they were seen
    for pause in ("PAUSE", "LATEST"):
        monkeypatch.setattr(draft_store, pause, PATIENCE * 10)  # no draft becomes a row of the list meanwhile
    yield home
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def booth(still_machine: Path) -> Callable[[str], Booth]:
    """A booth for a scene, by its name."""
    folder = still_machine / "src" / "relay"
    folder.mkdir(parents=True)
    return lambda scene: Booth(SCREENS / scene, still_machine, FakeEngine(folder))
