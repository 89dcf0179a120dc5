"""The painting half of the transcript: rows from the canvas, colours from the theme, selected text."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip

from phoenix_tui.widgets.transcript.bar import TranscriptBar
from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.kept_rows import KeptRows
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.painter import Painter
from phoenix_tui.widgets.transcript.scroll_keys import ScrollKeys
from phoenix_tui.widgets.transcript.selecting import block_selection, row_number, selected_text
from phoenix_tui.widgets.transcript.theme_colours import COMPONENTS, colours_of, css_of


class PaintedTranscript(ScrollKeys):
    """Paints a canvas itself: unchanged rows are handed out as the very same strips.

    Its rows never pass Textual's style cache, so line filters (NO_COLOR) are applied here.
    """

    DEFAULT_CSS = f"""
    PaintedTranscript {{
        background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1;
    }}
    {css_of("PaintedTranscript")}
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {*COMPONENTS}

    def __init__(self, model: TranscriptModel, widget_id: str | None) -> None:
        super().__init__(id=widget_id)
        self.canvas = Canvas(model)
        self._painter: Painter | None = None
        self._stale = True
        self._rows: list[Strip] | None = None
        self.kept = KeptRows(self, self.canvas)
        self._pressed_row = 0
        self._bar: TranscriptBar | None = None

    @property
    def vertical_scrollbar(self) -> TranscriptBar:
        """Made on first use, as Textual does, but of the kind that is painted only when it moved."""
        if self._bar is None:
            self._vertical_scrollbar = self._bar = bar = TranscriptBar(thickness=self.scrollbar_size_vertical)
            bar.display = False
            self.app._start_widget(self, bar)  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType] - no public way
        return self._bar

    def _set_dirty(self, *regions: Region) -> None:
        self._rows = None
        super()._set_dirty(*regions)

    def notify_style_update(self) -> None:
        """Colours may differ: painted rows are forgotten, lines and heights stay."""
        self._stale = True
        self._rows = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows within `crop`."""
        width = self.size.width  # found anew by Textual each time
        rows = self._painted_rows(width)
        first, last = crop.y, crop.y + crop.height
        if crop.x == 0 and crop.width == width:
            return rows if first == 0 and last == len(rows) else rows[first:last]
        return [row.crop(crop.x, crop.x + crop.width) for row in rows[first:last]]

    def render_line(self, y: int) -> Strip:
        """One row with its offsets, for the mouse: never on the painting path."""
        rows = self._painted_rows(self.size.width)
        strip = rows[y] if 0 <= y < len(rows) else Strip.blank(self.size.width)
        found = self.canvas.line_at(y)
        return strip if found is None else strip.apply_offsets(0, row_number(found[0], found[1]))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Selected text as it is copied."""
        return selected_text(self.canvas.stack, selection), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint another selection."""
        self.refresh()

    def text_select_all(self) -> None:
        """Select the block that was clicked: all of a conversation is never meant by a double click."""
        found = self.canvas.line_at(self._pressed_row)
        selection = None if found is None else block_selection(self.canvas.stack, found[0], found[1])
        if selection is not None:
            self.screen.selections = {self: selection}

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember where, for a double click."""
        self._pressed_row = event.y

    def _painted_rows(self, width: int) -> list[Strip]:
        if self._rows is None:
            painter = self._current_painter(width)
            before = self.kept.instead(painter, self.canvas.viewport.height + self.canvas.reserved)
            self._rows = self._paint(painter) if before is None else before
        return self._rows

    def _paint(self, painter: Painter) -> list[Strip]:
        # The painter's colours are true colours already, so this filter would only copy every row.
        filters = [each for each in self.get_line_filters() if not isinstance(each, ANSIToTruecolor)]
        rows = self.canvas.strips(painter, self.text_selection, filters, self.background_colors[1])
        self.kept.painted(rows, painter)
        return rows

    def _current_painter(self, width: int) -> Painter:
        """The painter of the theme and width in force."""
        if self._painter is None or self._stale or self._painter.width != width:
            colours, self._stale = colours_of(self), False
            if self._painter is None or (self._painter.colours, self._painter.width) != (colours, width):
                self._painter = Painter(colours, width)
                self.canvas.stack.drop_strips()
        return self._painter
