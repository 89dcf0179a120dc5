"""The real app over a fake engine, driven by keys."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual._context import visible_screen_stack
from textual.pilot import Pilot
from textual.strip import Strip

from phoenix_tui.app import PhoenixApp
from phoenix_tui.commands.command_context import CommandContext
from phoenix_tui.lifecycle.launch import Services
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.workspace.actions import Actions
from phoenix_tui.workspace.screen import WorkspaceScreen
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import FakeConversation, FakeEngine, FakeOnboarding, FakeSettings, launch, services
from tests.support.waiting import LOOK, PATIENCE, poll
from tools.clock import SYSTEM_CLOCK


@dataclass
class Shell:
    """A running app and what a test wants to look at."""

    app: PhoenixApp
    pilot: Pilot[None]
    engine: FakeEngine
    onboarding: FakeOnboarding
    settings: list[tuple[str, str]]
    exits: list[int]

    @property
    def screen(self) -> WorkspaceScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, WorkspaceScreen)
        return screen

    @property
    def ctx(self) -> CommandContext:
        assert self.screen.startup.ctx is not None
        return self.screen.startup.ctx

    @property
    def composer(self) -> Composer:
        return self.screen.parts.dock.composer

    @property
    def conversation(self) -> FakeConversation:
        found = self.ctx.active.conversation
        assert isinstance(found, FakeConversation)
        return found

    @property
    def status(self) -> str:
        return self.screen.parts.status.render().plain

    @property
    def toasts(self) -> list[str]:
        return [str(toast.message) for toast in self.app._notifications]

    @property
    def text(self) -> str:
        return "\n".join(strip.text for strip in self.strips)

    @property
    def strips(self) -> list[Strip]:
        """The rows of the screen; Textual needs the screens behind a sheet, or it would keep a blank for them."""
        visible_screen_stack.set(self.app._background_screens)
        return self.app.screen._compositor.render_strips()

    async def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"it did not come to be:\n{self.text}\n{self.toasts}")
            await self.pilot.pause()
            await poll(condition, LOOK)

    async def shows(self, text: str) -> None:
        await self.until(lambda: text in self.text)

    async def lacks(self, text: str) -> None:
        await self.until(lambda: text not in self.text)

    async def ended(self) -> None:
        """Wait until the app would leave; it stays, since a pilot cannot pause an app that is gone."""
        assert await poll(lambda: self.exits), "it did not end"

    async def type(self, text: str) -> None:
        names = {" ": "space", "/": "slash", "@": "at", "!": "exclamation_mark", ".": "full_stop", "?": "question_mark"}
        await self.pilot.press(*(names.get(letter, letter) for letter in text))

    async def press_at_once(self, *keys: str) -> None:
        """Keys that make a pair however slow the machine is."""
        escapes = self.screen.escape_handler.escapes
        escapes.clock = SteppedClock(time.monotonic())  # time stands still between two keys
        await self.pilot.press(*keys)
        escapes.clock = SYSTEM_CLOCK  # and goes on

    async def say(self, text: str) -> FakeConversation:
        await self.type(text)
        await self.pilot.press("enter")
        await self.until(lambda: self.ctx.active.conversation and self.conversation.said)
        return self.conversation

    async def command(self, line: str) -> None:
        """Run a slash command and wait for its end."""
        await Actions(self.ctx).command(line)

    async def open(self, conversation: FakeConversation) -> None:
        await self.ctx.active.open(conversation.id)
        await self.pilot.pause()


OpenShell = Callable[..., AbstractAsyncContextManager[Shell]]


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    return FakeEngine(tmp_path)


@pytest.fixture
def open_shell(tmp_path: Path, engine: FakeEngine) -> OpenShell:
    @asynccontextmanager
    async def opened(size: tuple[int, int] = (80, 24), **asked: Any) -> AsyncIterator[Shell]:
        onboarding = asked.pop("onboarding", FakeOnboarding())
        kept: list[tuple[str, str]] = []
        behind = {name: asked.pop(name) for name in ("runner", "warning", "system", "kept") if name in asked}

        async def open_services() -> Services:
            made = services(engine, onboarding, **behind)
            return replace(made, settings=FakeSettings(kept))

        app = PhoenixApp(launch(tmp_path, **asked), open_services)
        exits: list[int] = []
        leave = app.exit
        app.exit = lambda *_, return_code=0, **__: exits.append(return_code)  # type: ignore[method-assign]  # watched
        async with app.run_test(size=size, notifications=True) as pilot:
            shell = Shell(app, pilot, engine, onboarding, kept, exits)
            await shell.until(lambda: shell.screen.startup.ctx_in_use)
            yield shell
            app.exit = leave  # type: ignore[method-assign]  # the pilot ends the app by it

    return opened
