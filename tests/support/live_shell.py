"""The screens over the real engine, on a scripted provider and a store of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from engine.conversation import Conversation
from phoenix_tui.app import PhoenixApp
from phoenix_tui.lifecycle.launch import Services
from tests.support.engine import EngineHarness, engine_harness
from tests.support.fake_engine import FakeOnboarding, FakeSettings, launch, services_around
from tests.support.scripted_provider import Reply, Text
from tests.support.shell import ScreenDriver
from tests.support.unseen import leave_unpainted

DONE = Reply((Text("Done."),))


@dataclass
class LiveShell(ScreenDriver):
    """Screens over the real engine."""

    harness: EngineHarness

    @property
    def in_view(self) -> Conversation | None:
        """The conversation in view; None while a new one has nothing in it."""
        return self.active.conversation

    async def say(self, text: str) -> Conversation:
        """Send a message, and wait for the end of its run."""
        before = self.in_view.record.message_count if self.in_view is not None else 0
        await self.type(text)
        await self.pilot.press("enter")
        await self.until(lambda: self.in_view is not None and self.in_view.record.message_count > before)
        conversation = self.in_view
        assert conversation is not None
        await conversation.wait_idle()
        return conversation


@asynccontextmanager
async def live_shell(
    home: Path,
    size: tuple[int, int] = (80, 24),
    replies: tuple[Reply, ...] = (DONE,) * 9,
    *,
    paints: bool = False,
    **asked: Any,
) -> AsyncIterator[LiveShell]:
    """The app in `home`, whose model gives `replies` in order; `asked` are fields of its launch and its services."""
    kept: list[tuple[str, str]] = []
    exits: list[int] = []
    onboarding = FakeOnboarding()
    behind = {name: asked.pop(name) for name in Services.__struct_fields__ if name in asked}
    async with engine_harness(home, *replies) as harness:

        async def open_services() -> Services:
            made = services_around(harness.engine, harness.store.library, home, onboarding, FakeSettings(kept))
            return replace(made, **behind)

        app = PhoenixApp(launch(home, model="scripted/main", **asked), open_services)
        if not paints:
            leave_unpainted(app)
        leave = app.exit
        app.exit = lambda *_, return_code=0, **__: exits.append(return_code)  # type: ignore[method-assign]  # watched
        async with app.run_test(size=size, notifications=True) as pilot:
            shell = LiveShell(app, pilot, onboarding, kept, exits, harness)
            await shell.until(lambda: shell.screen.startup.ctx_in_use)
            yield shell
            app.exit = leave  # type: ignore[method-assign]  # the pilot ends the app by it
