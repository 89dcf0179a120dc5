"""The real app over a fake engine, driven by keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from phoenix_tui.app import PhoenixApp
from phoenix_tui.lifecycle.launch import Services
from phoenix_tui.widgets import completer
from tests.support.fake_engine import FakeEngine, FakeOnboarding, FakeSettings, launch, services
from tests.support.live_shell import LiveShell, live_shell
from tests.support.shell import Shell
from tests.support.unseen import leave_unpainted
from tests.support.waiting import PATIENCE

BEHIND = (
    *("runner", "programs", "warning", "system", "kept", "notes"),
    *("trust", "mcp", "models", "invocables", "statistics", "diagnostics"),
)
"""Services that a test may replace."""
OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]
OpenLive = Callable[..., AbstractAsyncContextManager[LiveShell]]


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    return FakeEngine(tmp_path)


@pytest.fixture
def tab_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Tab wait for the completions of a text however slow the machine is."""
    monkeypatch.setattr(completer, "SETTLES", PATIENCE)


@pytest.fixture
def open_shell(tmp_path: Path, engine: FakeEngine) -> OpenShell:
    @asynccontextmanager
    async def opened(size: tuple[int, int] = (80, 24), **asked: Any) -> AsyncIterator[Shell]:
        onboarding = asked.pop("onboarding", FakeOnboarding())
        kept: list[tuple[str, str]] = []
        behind = {name: asked.pop(name) for name in BEHIND if name in asked}

        async def open_services() -> Services:
            made = services(engine, onboarding, **behind)
            return replace(made, settings=FakeSettings(kept))

        paints = asked.pop("paints", False)
        app = PhoenixApp(launch(tmp_path, **asked), open_services)
        if not paints:
            leave_unpainted(app)
        exits: list[int] = []
        leave = app.exit
        app.exit = lambda *_, return_code=0, **__: exits.append(return_code)  # type: ignore[method-assign]  # watched
        async with app.run_test(size=size, notifications=True) as pilot:
            shell = Shell(app, pilot, onboarding, kept, exits, engine)
            await shell.until(lambda: shell.screen.startup.ctx_in_use)
            yield shell
            app.exit = leave  # type: ignore[method-assign]  # the pilot ends the app by it

    return opened


@pytest.fixture
def open_live(tmp_path: Path) -> OpenLive:
    """Opens the screens over the real engine."""
    return partial(live_shell, tmp_path)


@pytest.fixture
async def shell(open_shell: OpenShell) -> AsyncIterator[Shell]:
    """A shell with nothing special about it; `open_shell` opens one that is wider, plainer or richer."""
    async with open_shell() as opened:
        yield opened


@pytest.fixture
async def live(open_live: OpenLive) -> AsyncIterator[LiveShell]:
    """A shell over the real engine with nothing special about it."""
    async with open_live() as opened:
        yield opened
