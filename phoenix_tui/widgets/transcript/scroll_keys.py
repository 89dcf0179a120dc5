"""Scrolling by keys and wheel, at once and never animated."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.scroll_view import ScrollView


class ScrollKeys(ScrollView):
    """A scroll view whose keys move it without animation."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", "Up", show=False),
        Binding("down", "scroll_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("home,ctrl+home", "scroll_home", "Start", show=False),
        Binding("end,ctrl+end", "scroll_end", "End", show=False),
    ]

    def _move(self, y: float) -> None:
        self.scroll_to(y=y, animate=False, force=True)

    def action_scroll_up(self) -> None:
        """One row up."""
        self._move(self.scroll_y - 1)

    def action_scroll_down(self) -> None:
        """One row down."""
        self._move(self.scroll_y + 1)

    def action_page_up(self) -> None:
        """A page up, two rows kept in sight."""
        self._move(self.scroll_y - max(self.size.height - 2, 1))

    def action_page_down(self) -> None:
        """A page down, two rows kept in sight."""
        self._move(self.scroll_y + max(self.size.height - 2, 1))

    def action_scroll_home(self) -> None:
        """To the first message."""
        self._move(0)

    def action_scroll_end(self) -> None:
        """To the end, and follow it."""
        self._move(self.virtual_size.height)
