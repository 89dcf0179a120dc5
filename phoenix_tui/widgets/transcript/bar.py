"""The transcript's scrollbar: painted only when its thumb moved, from rows that are made once per colours."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final, TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip

from phoenix_tui.widgets.still import Still

_EIGHTHS: Final = 8
_GLYPHS: Final = ScrollBarRender.VERTICAL_BARS
Kind: TypeAlias = tuple[int, int]
"""Kind of a row of the bar, and for the thumb's ends the number of eighths filled or free."""
BACK, ABOVE, BELOW, THUMB, HEAD, TAIL = range(6)
_PRESSED: Final = ("", "scroll_up", "scroll_down", "grab", "grab", "grab")
"""Action of a press on each kind, as Textual names it."""


def thumb(size: int, total: int, window: int, position: float) -> tuple[int, int]:
    """Start and end of the thumb in eighths of a cell, as Textual has it; both 0 where all is visible."""
    if not size or not 0 < window < total or size == total:
        return 0, 0
    length = max(1.0, window * size / total)
    start = max(int((size - length) * position / (total - window) * _EIGHTHS), 0)
    return start, start + ceil(length * _EIGHTHS)


def kinds_of(size: int, start: int, end: int) -> list[Kind]:
    """Kind of each row, top down."""
    if not end:
        return [(BACK, 0)] * size
    first, above = divmod(start, _EIGHTHS)
    last, below = divmod(end, _EIGHTHS)
    kinds = [(ABOVE, 0)] * first + [(THUMB, 0)] * (last - first) + [(BELOW, 0)] * (size - last)
    if above:
        kinds[first] = (HEAD, above)
    if below and last < size:
        kinds[last] = (TAIL, below)
    return kinds[:size]


class TranscriptBar(Still, ScrollBar):
    """Textual's vertical scrollbar laid out by hand: through its layout and style cache it cost more than the text."""

    def __init__(self, *, thickness: int) -> None:
        super().__init__(name="vertical", thickness=thickness)
        self._thumb = (0, 0)
        self._made: tuple[Style, int, dict[Kind, Strip]] | None = None
        """The rows of one pair of colours and one width."""

    def stand(self, total: int, window: int, y: float) -> None:
        """Show a window of a longer text; nothing is painted where the thumb looks the same."""
        self.set_reactive(ScrollBar.window_virtual_size, total)  # pyright: ignore[reportArgumentType] - a descriptor
        self.set_reactive(ScrollBar.window_size, window)  # pyright: ignore[reportArgumentType] - a descriptor
        self.set_reactive(ScrollBar.position, y)  # pyright: ignore[reportArgumentType] - a descriptor
        moved = thumb(self.size.height, total, window, y)
        if moved != self._thumb:
            self._thumb = moved
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows within `crop`."""
        if self._painted is None or self._painted[0] != crop:
            rows = self._rows()[crop.y : crop.bottom]
            if (crop.x, crop.width) != (0, self.size.width):
                rows = [row.crop(crop.x, crop.right) for row in rows]
            self._painted = (crop, rows)
        return self._painted[1]

    def _rows(self) -> list[Strip]:
        size, bar = self.size.height, self.render()
        if not isinstance(bar, ScrollBarRender) or not isinstance(bar.style, Style):
            return [Strip.blank(self.size.width)] * size
        self._thumb = thumb(size, self.window_virtual_size, self.window_size, self.position)
        return self._filtered([self._row(kind, bar.style) for kind in kinds_of(size, *self._thumb)])

    def _filtered(self, rows: Sequence[Strip]) -> list[Strip]:
        # The colours are already true colours; the others (NO_COLOR) keep their result with each row.
        filters = [each for each in self.get_line_filters() if not isinstance(each, ANSIToTruecolor)]
        found = list(rows)
        for each in filters:
            found = [row.apply_filter(each, self.background_colors[1]) for row in found]
        return found

    def _row(self, kind: Kind, colours: Style) -> Strip:
        width = self.size.width
        if self._made is None or self._made[:2] != (colours, width):
            self._made = (colours, width, {})
        made = self._made[2]
        row = made.get(kind)
        if row is None:
            row = made[kind] = Strip([segment_of(kind, width, colours)], width)
        return row


def segment_of(kind: Kind, width: int, colours: Style) -> Segment:
    """One row, with the action of a press on it."""
    what, eighths = kind
    glyph = _GLYPHS[_EIGHTHS - 1 - eighths] if what in {HEAD, TAIL} else " "
    pressed = {"@mouse.down": _PRESSED[what]} if _PRESSED[what] else None
    style = Style(
        color=colours.color if what in {THUMB, HEAD, TAIL} else None,
        bgcolor=colours.bgcolor,
        reverse=what in {THUMB, TAIL} or None,
        meta=pressed,
    )
    return Segment(glyph * width, style)
