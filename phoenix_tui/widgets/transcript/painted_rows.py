"""The rows of a transcript on the screen, painted once until a part of them is dirty."""

from __future__ import annotations

from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from phoenix_tui.widgets.transcript.kept_rows import KeptRows
from phoenix_tui.widgets.transcript.painter import Painter
from phoenix_tui.widgets.transcript.selecting import row_number
from phoenix_tui.widgets.transcript.theme_colours import colours_of
from phoenix_tui.widgets.transcript.visible_rows import VisibleRows


class PaintedRows:
    """Hands unchanged rows out as the very same strips.

    They never pass Textual's style cache, so line filters (NO_COLOR) are applied here.
    """

    def __init__(self, view: Widget, visible: VisibleRows, kept: KeptRows) -> None:
        self._view = view
        self._visible = visible
        self._kept = kept
        self._painter: Painter | None = None
        self._is_stale = True
        """True when the theme may have changed since."""
        self._rows: list[Strip] | None = None

    def forget(self) -> None:
        """Drop the rows after a visible change."""
        self._rows = None

    def restyle(self) -> None:
        """Colours may differ: painted rows are forgotten, lines and heights stay."""
        self._is_stale = True
        self._rows = None

    def within(self, crop: Region, width: int) -> list[Strip]:
        """The rows within `crop`, of a view of that width."""
        rows = self._rows
        if rows is None:
            rows = self._rows = self._paint(self._painter_for(width))
        first, last = crop.y, crop.y + crop.height
        if crop.x == 0 and crop.width == width:
            return rows if first == 0 and last == len(rows) else rows[first:last]
        return [row.crop(crop.x, crop.x + crop.width) for row in rows[first:last]]

    def with_offsets(self, y: int, width: int) -> Strip:
        """One row that says which row of which message it is, for the mouse: never on the painting path."""
        found = self._visible.canvas.line_at(y)
        rows = self.within(Region(0, y, width, 1), width)
        strip = rows[0] if rows else Strip.blank(width)
        return strip if found is None else strip.apply_offsets(0, row_number(found[0], found[1]))

    def _paint(self, painter: Painter) -> list[Strip]:
        before = self._kept.instead(painter, self._visible.height)
        if before is not None:
            return before
        view = self._view
        rows = self._visible.strips(painter, view.text_selection, is_late=self._kept.is_late)
        for line_filter in view.get_line_filters():
            # The painter's colours are already true colours, so this filter would only copy every row.
            if not isinstance(line_filter, ANSIToTruecolor):
                rows = [row.apply_filter(line_filter, view.background_colors[1]) for row in rows]
        self._kept.painted(rows, painter)
        return rows

    def _painter_for(self, width: int) -> Painter:
        """The painter of the theme and width in force."""
        if self._painter is None or self._is_stale or self._painter.width != width:
            colours, self._is_stale = colours_of(self._view), False
            if self._painter is None or (self._painter.colours, self._painter.width) != (colours, width):
                self._painter = Painter(colours, width)
                self._visible.canvas.stack.drop_strips()
        return self._painter
