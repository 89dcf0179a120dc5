"""The widgets that show one conversation, and how something is said in passing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from phoenix_tui.widgets.dock import Dock
from phoenix_tui.widgets.status_line import StatusLine
from phoenix_tui.widgets.title_row import TitleRow
from phoenix_tui.widgets.welcome_panel import WelcomePanel

if TYPE_CHECKING:
    from engine.api.engine import EngineApi
    from phoenix_tui.widgets.transcript.gallery import Pictures
    from phoenix_tui.widgets.transcript.view import TranscriptView


def _nobody_yet(_: bool) -> None:
    """Nothing greets before the services are there."""


class WorkspaceWidgets(Struct, eq=False):
    """The widgets that show the conversation in focus; with panes, transcript and title change with the focus."""

    welcome: WelcomePanel
    title: TitleRow
    dock: Dock
    status: StatusLine
    greet: Callable[[bool], None] = _nobody_yet
    """Show the welcome panel, or put it away."""
    view: TranscriptView | None = None
    """What shows the messages; its modules are a third of what a start would load, so it is made behind the first frame
    (`Startup.furnish`)."""
    pictures: Pictures | None = None
    """Where transcripts get the pictures of stored images; None until the services are there."""
    engine: EngineApi | None = None
    """Likewise; asked for the sub-agents of what is shown."""

    @property
    def transcript(self) -> TranscriptView:
        """The view, for all that is done once it stands."""
        assert self.view is not None, "nothing is shown before the first frame stands"
        return self.view
