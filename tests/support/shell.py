"""The driver of the tests of the screens: keys in, screen out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from textual._context import visible_screen_stack
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip

from phoenix_tui.app import PhoenixApp
from phoenix_tui.commands.run import CommandContext
from phoenix_tui.modals.page_sheet import PageSheet
from phoenix_tui.widgets.answer_keys import Answering
from phoenix_tui.widgets.composer import Composer
from phoenix_tui.widgets.conversation_list import ConversationList
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.question_panel import QuestionPanel
from phoenix_tui.widgets.transcript.view import TranscriptView
from phoenix_tui.workspace.actions import Actions
from phoenix_tui.workspace.active_conversation import ActiveConversation
from phoenix_tui.workspace.screen import WorkspaceScreen
from phoenix_tui.workspace.widgets import WorkspaceWidgets
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import FakeConversation, FakeEngine, FakeOnboarding
from tests.support.waiting import LOOK, PATIENCE, poll
from tools.clock import SYSTEM_CLOCK


@dataclass
class ScreenDriver:
    """Keys into a running app and a view of its screen; the one place that knows where widgets are."""

    app: PhoenixApp
    pilot: Pilot[None]
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
    def top(self) -> Screen[Any]:
        """The screen or sheet that has the keys."""
        return self.app.screen

    def is_page(self, title: str) -> bool:
        """True while the page with this title has the keys."""
        return isinstance(self.top, PageSheet) and self.top.page.title == title

    @property
    def active(self) -> ActiveConversation:
        return self.ctx.active

    @property
    def parts(self) -> WorkspaceWidgets:
        return self.screen.parts

    @property
    def dock(self) -> Dock:
        return self.parts.dock

    @property
    def composer(self) -> Composer:
        return self.dock.composer

    @property
    def answering(self) -> Answering:
        return self.composer.answering

    @property
    def question(self) -> QuestionPanel:
        return self.dock.question

    @property
    def rows(self) -> ConversationList:
        """The list of conversations."""
        return self.screen.rows

    @property
    def transcript(self) -> TranscriptView:
        return self.parts.transcript

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Show a toast."""
        self.screen.toasts.tell(text, bad=bad)

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
        await self.pilot.pause()  # so that the screen is painted once
        await self.until(lambda: text in self.text)

    async def lacks(self, text: str) -> None:
        await self.pilot.pause()
        await self.until(lambda: text not in self.text)

    async def ended(self) -> None:
        """Wait until the app would leave; it stays, since a pilot cannot pause an app that is gone."""
        assert await poll(lambda: self.exits), "it did not end"

    async def type(
        self, text: str, *keys: str, shows: str | tuple[str, ...] = (), until: Callable[[], object] | None = None
    ) -> None:
        """Type a text, press keys, then wait as `press` does."""
        names = {" ": "space", "/": "slash", "@": "at", "!": "exclamation_mark", ".": "full_stop", "?": "question_mark"}
        await self.press(*(names.get(letter, letter) for letter in text), *keys, shows=shows, until=until)

    async def enter(
        self, text: str, *, shows: str | tuple[str, ...] = (), until: Callable[[], object] | None = None
    ) -> None:
        """Type a text, press Enter, then wait as `press` does."""
        await self.type(text, "enter", shows=shows, until=until)

    async def press(
        self, *keys: str, shows: str | tuple[str, ...] = (), until: Callable[[], object] | None = None
    ) -> None:
        """Press keys one after the other, then wait for texts on the screen or for a condition."""
        await self.pilot.press(*keys)
        if shows:
            texts = (shows,) if isinstance(shows, str) else shows
            await self.until(lambda: has_all(self.text, texts))
        if until is not None:
            await self.until(until)

    async def press_at_once(self, *keys: str) -> None:
        """Keys that make a pair however slow the machine is."""
        escapes = self.screen.escape_handler.escapes
        escapes.clock = SteppedClock(time.monotonic())  # time stands still between two keys
        await self.pilot.press(*keys)
        escapes.clock = SYSTEM_CLOCK  # and goes on

    async def command(self, line: str) -> None:
        """Run a slash command and wait for its end."""
        await Actions(self.ctx).command(line)


@dataclass
class Shell(ScreenDriver):
    """Screens over the fake engine."""

    engine: FakeEngine

    @property
    def in_view(self) -> FakeConversation | None:
        """The conversation in view; None while a new one has nothing in it."""
        return cast("FakeConversation | None", self.active.conversation)

    @property
    def conversation(self) -> FakeConversation:
        found = self.in_view
        assert isinstance(found, FakeConversation)
        return found

    async def say(self, text: str) -> FakeConversation:
        await self.enter(text, until=lambda: self.ctx.active.conversation and self.conversation.said)
        return self.conversation

    async def open(self, conversation: FakeConversation) -> None:
        await self.ctx.active.open(conversation.id)
        await self.pilot.pause()


def has_all(screen: str, texts: tuple[str, ...]) -> bool:
    """True when each of the texts is on the screen."""
    return all(text in screen for text in texts)
