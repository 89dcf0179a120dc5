"""The hits of a search as a list for keys and mouse; only visible ones are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from engine.records import SearchHit
from phoenix_tui.modals.search_rows import HIT_ROWS, hit_rows
from phoenix_tui.widgets.bases import first_visible


class HitList(Static):
    """Shows a window of the hits round the chosen one."""

    class Clicked(Message):
        """A hit was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    class Turned(Message):
        """The wheel was turned."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._first = 0
        self._count = 0

    @property
    def fitting(self) -> int:
        """Hits that are in sight at once."""
        return max(self.size.height // HIT_ROWS, 1)

    def show(self, hits: Sequence[SearchHit], chosen: int, words: Sequence[str], width: int) -> None:
        """Draw the hits round the chosen one."""
        self._count = len(hits)
        self._first = first_visible(chosen, len(hits), self.fitting)
        rows = [
            hit_rows(hit, words, width, chosen=place == chosen)
            for place, hit in enumerate(hits[self._first : self._first + self.fitting], start=self._first)
        ]
        self.update(Content("\n").join(rows))

    def on_click(self, event: events.Click) -> None:
        """Post the hit at this row."""
        place = self._first + event.y // HIT_ROWS
        if place < self._count:
            self.post_message(self.Clicked(place))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Post a request for later hits."""
        event.stop()
        self.post_message(self.Turned(1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Post a request for earlier hits."""
        event.stop()
        self.post_message(self.Turned(-1))
