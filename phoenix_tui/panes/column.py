"""The column that holds the conversation in view, or all panes."""

from __future__ import annotations

from contextlib import AbstractContextManager

from textual import events
from textual.layout import Layout

from phoenix_tui.widgets.bases import StillColumn


class PaneEvents:
    """Events of the panes; of one alone nothing follows from them."""

    def focus_clicked(self, event: events.Click) -> None:
        """Give the dock to the pane that was clicked."""

    def follow_resize(self) -> None:
        """Find out which panes are in sight now."""

    def show_state(self) -> None:
        """Show the state of a conversation, in its title, its foot and its tab."""


class ConversationColumn(StillColumn):
    """Column that reports clicks, so that the pane there gets the dock."""

    panes = PaneEvents()
    """Set while there are panes, as the layout below."""
    arranged: Layout | None = None

    @property
    def layout(self) -> Layout:
        return self.arranged or super().layout

    def at_once(self) -> AbstractContextManager[None]:
        return self.app.batch_update()

    def on_resize(self) -> None:
        self.call_after_refresh(self.panes.follow_resize)

    def on_click(self, event: events.Click) -> None:
        self.panes.focus_clicked(event)
