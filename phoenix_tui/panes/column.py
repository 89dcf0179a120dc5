"""The column that holds the conversation in view, or all panes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from textual import events
from textual.layout import Layout

from phoenix_tui.widgets.still import StillColumn


class ConversationColumn(StillColumn):
    """Tells where it was clicked, so that the pane there gets the dock."""

    pressed: Callable[[events.Click], None] | None = None
    """Set while there are panes, as the two below."""
    resized: Callable[[], None] | None = None
    arranged: Layout | None = None

    @property
    def layout(self) -> Layout:
        """The one of the panes, else a column."""
        return self.arranged or super().layout

    def at_once(self) -> AbstractContextManager[None]:
        """What is done inside is drawn as one change."""
        return self.app.batch_update()  # pyright: ignore[reportUnknownMemberType] - Textual leaves the type of `app` open

    def on_resize(self) -> None:
        """Other panes may be in sight now."""
        if self.resized is not None:
            self.call_after_refresh(self.resized)

    def on_click(self, event: events.Click) -> None:
        """What a child did with the click is done by now."""
        if self.pressed is not None:
            self.pressed(event)
