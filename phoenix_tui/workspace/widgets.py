"""The widgets that show one conversation, and its passing notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from phoenix_tui.lifecycle.opening_notes import OpeningNotes
from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.status_line import StatusLine, TitleRow
from phoenix_tui.widgets.welcome_panel import WelcomePanel

if TYPE_CHECKING:
    from engine.api.engine import EngineApi
    from phoenix_tui.widgets.transcript.gallery import Pictures
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
    pictures: Pictures | None = None
    """Source of the pictures of stored images; None until the services are open."""
    engine: EngineApi | None = None
    """The engine, for the sub-agents of the shown conversation; None until then."""
    openings: OpeningNotes = field(default_factory=OpeningNotes)
    """Notes about conversations whose first frames are still to come."""

    @property
    def transcript(self) -> TranscriptView:
        """The view, for all uses after the first frame."""
        assert self.view is not None, "nothing is shown before the first frame stands"
        return self.view

    def greet(self, wanted: bool) -> None:
        """Show the welcome panel, or put it away."""
        if self.welcoming is not None and not (wanted and self.welcome.held):
            self.welcoming.show(wanted)
