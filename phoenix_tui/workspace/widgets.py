"""The widgets that show one conversation, and passing notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from phoenix_tui.lifecycle.crash import OpeningNotes
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.status_line import StatusLine, TitleRow
from phoenix_tui.widgets.welcome_panel import WelcomePanel
from tools.clean import clean
from tools.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from textual.app import App

    from engine.engine import Engine
    from phoenix_tui.images.source import ImageSource
    from phoenix_tui.modals.base import PhoenixScreen
    from phoenix_tui.widgets.transcript.view import TranscriptView
    from phoenix_tui.workspace.onboarding import Welcoming


class WorkspaceWidgets(Struct, eq=False):
    """The widgets that show the conversation in focus; with panes, transcript and title change with the focus."""

    welcome: WelcomePanel
    title: TitleRow
    dock: Dock
    status: StatusLine
    welcoming: Welcoming | None = None
    """Fills the welcome panel; None until the services are open."""
    view: TranscriptView | None = None
    """Widget of the messages; its modules are a third of the load of a start, so it is made behind the first frame
    (`Startup.furnish`).
    """
    pictures: ImageSource | None = None
    """Source of the pictures of stored images; None until the services are open."""
    engine: Engine | None = None
    """The engine, for the sub-agents of the shown conversation; None until then."""
    openings: OpeningNotes = field(default_factory=OpeningNotes)
    """Notes about conversations whose first frames are still to come."""

    @property
    def transcript(self) -> TranscriptView:
        assert self.view is not None, "nothing is shown before the first frame stands"
        return self.view

    def greet(self, wanted: bool) -> None:
        if self.welcoming is not None and not (wanted and self.welcome.held):
            self.welcoming.show(wanted, self.title)


TOAST_SECONDS: Final = 5.0
REJECTED_SECONDS: Final = 20.0
"""Seconds that the notice of a broken file stays."""
READ_SECONDS: Final = 1.0
"""Seconds for reading a short text; a sheet that opens sooner belongs to it."""


def notify_rejected(app: App[object], error: Exception | str, kept: str) -> None:
    """Report why a file of the user's was rejected, and what stays in force instead."""
    app.notify(f"{error} {kept}", severity="error", timeout=REJECTED_SECONDS, markup=False, title="")


class Toasts:
    """Toasts, de-duplicated while visible and cleared before a modal opens."""

    def __init__(self, screen: PhoenixScreen[None]) -> None:
        self._screen = screen
        self._told: dict[str, float] = {}
        """Recent texts and their times."""
        self.clock: Clock = SYSTEM_CLOCK

    def tell(self, text: str, *, bad: bool = False) -> None:
        """Say something; the text may come from outside."""
        now = self.clock.monotonic()
        if now - self._told.get(text, -TOAST_SECONDS) < TOAST_SECONDS:
            return
        self._told = {said: at for said, at in self._told.items() if now - at < TOAST_SECONDS} | {text: now}
        self._screen.app.notify(
            clean(text), severity="error" if bad else "information", timeout=TOAST_SECONDS, markup=False
        )

    @property
    def are_shown(self) -> bool:
        return bool(self._screen.query("Toast"))

    def dismiss(self) -> None:
        self._screen.app.clear_notifications()
        self._told.clear()

    def make_way(self) -> None:
        """Clear read toasts before a sheet opens; errors stay."""
        if not self._screen.query("Toast.-error"):
            self._let_go()

    def leave(self) -> None:
        """Clear the toasts of the former conversation, errors too.

        Toasts without a conversation stay, as do those of the change itself.
        """
        told = {clean(text) for text in self._told}
        toasts = self._screen.query("Toast")
        if not self._screen.has_class("-panes") and all(str(toast.render()) in told for toast in toasts):
            self._let_go()

    def _let_go(self) -> None:
        if self.clock.monotonic() - max(self._told.values(), default=0.0) >= READ_SECONDS:
            self.dismiss()
