"""Position of the window on its transcript: found anew after every change, moved by rows, pages and jumps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.widget import Widget

from phoenix_tui.widgets.transcript.bar import TranscriptBar
from phoenix_tui.widgets.transcript.canvas import Canvas, PlacedPart

BAR_SECONDS: Final = 1.0
"""Seconds between updates of the scrollbar while text streams; painting it dirties its whole column."""


class Scroller:
    """Finds the window's place, reports it to Textual without a layout, and paints the changed rows."""

    def __init__(self, view: ScrollView, canvas: Canvas, bar: Callable[[], TranscriptBar]) -> None:
        self._view = view
        self._canvas = canvas
        self._bar = bar
        """The scrollbar, created on first use."""
        self._bar_at = float("-inf")
        self.followers: Sequence[Callable[[], None]] = ()
        """Called in their order each time the window was placed: other rows may be visible."""

    def place_again(self) -> None:
        """Find the window's place and paint all of it."""
        self._place(whole=True)

    def place_changed(self) -> None:
        """Find the window's place and paint later changes."""
        self._place(whole=False)

    def fit(self) -> None:
        """Rows at the bottom were given away, or came back."""
        self._canvas.viewport.height = self._view.size.height - self._canvas.reserved
        self.place_again()

    def scrolled(self, y: int) -> None:
        """Handle a scroll by Textual: new rows are measured, and the visible ones keep their place."""
        # Textual clamps the position to a new height before it reports that height.
        self._canvas.viewport.height = self._view.size.height - self._canvas.reserved
        self._canvas.viewport.move_to(y)
        self._canvas.cursor.come_along()
        self.place_again()

    def row(self, by: int) -> None:
        """Rows up (-1) or down (1), at once and never animated."""
        self._move(self._view.scroll_y + by)

    def page(self, by: int) -> None:
        """Pages up (-1) or down (1), two rows kept in sight."""
        self._move(self._view.scroll_y + by * max(self._view.size.height - 2, 1))

    def end(self, by: int) -> None:
        """Go to the first message (-1), or to the end (1), which is followed from then on."""
        self._move(0 if by < 0 else self._view.virtual_size.height)

    def jump(self, seq: int) -> None:
        """Put message `seq` at the top, loading it where it must; the block cursor goes along where it is on."""
        self._canvas.viewport.stand_at(seq - 1)
        if self._canvas.cursor.is_on:
            self._canvas.cursor.go(seq - 1)
            self._canvas.viewport.stand_at(seq - 1)
        self.place_again()

    def paint_from(self, row: int) -> None:
        """Paint the rows from one in sight on."""
        width, height = self._view.size
        self._view.refresh(Region(0, row, width, height - row))

    def _move(self, y: float) -> None:
        self._view.scroll_to(y=y, animate=False, force=True)

    def _place(self, *, whole: bool) -> None:
        placed, size = self._canvas.place(), self._view.size
        if not size.height:
            return
        moved = whole or placed.y != self._view.scroll_y
        self._stand(placed, size, bar=whole or not self._canvas.model.live.pieces)
        if moved:
            self._view.refresh()
        elif placed.first is not None:
            self.paint_from(placed.first)
        for follow in self.followers:
            follow()

    def _stand(self, placed: PlacedPart, size: Size, *, bar: bool) -> None:
        """Move scroll position and bar without a layout."""
        view, y, whole = self._view, float(placed.y), Size(size.width, placed.total)
        # pyright takes a descriptor read on the class for its value.
        view.set_reactive(Widget.virtual_size, whole)  # pyright: ignore[reportArgumentType] - as said
        view.set_reactive(Widget.scroll_y, y)
        view.set_reactive(Widget.scroll_target_y, y)  # pyright: ignore[reportArgumentType] - as said
        now = self._canvas.model.clock.monotonic()
        if bar or now - self._bar_at >= BAR_SECONDS:
            self._bar_at = now
            self._bar().stand(placed.total, size.height, y)
