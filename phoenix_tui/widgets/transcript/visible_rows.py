"""The strips of the visible rows, with overlays: the prompt on top, new content, the block cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from textual.selection import Selection
from textual.strip import Strip

from phoenix_tui.markdown.lines import MARGIN, QUIET, Span
from phoenix_tui.widgets.transcript.canvas import Canvas
from phoenix_tui.widgets.transcript.overlays import Overlays, barred, is_prompt, prompt_above
from phoenix_tui.widgets.transcript.painter import Painter
from phoenix_tui.widgets.transcript.parts import Drawn, Part, located
from phoenix_tui.widgets.transcript.selecting import painted, row_number

if TYPE_CHECKING:
    from phoenix_tui.widgets.transcript.key_row import KeyRow

PictureStrip: TypeAlias = Callable[[Part, int, Painter], Strip | None]
"""A row of a part that shows an image; None while it is not there."""
STICKY_HEIGHT: Final = 6
"""Rows a view must have before one is given to the prompt."""


class VisibleRows:
    """Paints the visible part of a canvas."""

    def __init__(self, canvas: Canvas, picture_strip: PictureStrip) -> None:
        self.canvas = canvas
        self._picture_strip = picture_strip
        self._overlays = Overlays()
        self._key_row: KeyRow | None = None

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.canvas.viewport.height + self.canvas.reserved

    def strips(self, painter: Painter, selection: Selection | None, *, is_late: bool = False) -> list[Strip]:
        """A strip for each row in sight; where messages are `is_late`, a row says that they are being read."""
        viewport, blank = self.canvas.viewport, painter.spans_strip(())
        rows = list(viewport.rows())
        strips: list[Strip] = []
        for (slot, row, _), found in zip(rows, located(rows), strict=True):
            try:
                strips.append(self._row_strip(found, row, slot, painter, selection) or blank)
            except Exception as error:  # noqa: BLE001 - any fault of a block
                self.canvas.stack.show_plainly(slot, error)
                strips.append(blank)
        strips.extend([blank] * (viewport.height - len(strips)))
        if is_late:
            self._say_reading(strips, rows, painter)
        self._overlay(strips, painter)
        self._show_cursor(strips, rows, painter)
        return strips

    def _row_strip(
        self, found: tuple[Part, int] | None, row: int, slot: int, painter: Painter, selection: Selection | None
    ) -> Strip | None:
        if found is None or found[1] < 0 or found[1] >= len(found[0].lines):
            return None
        part, index = found
        strip = (part.picture and self._picture_strip(part, index, painter)) or part_strip(part, index, painter)
        if self.canvas.marks.words:
            strip = self.canvas.marks.paint(strip, part, index, painter)
        span = None if selection is None else selection.get_span(row_number(slot, row))
        if span is None:
            return strip
        return painted(strip, part.lines[index].text, span, painter.selection)

    @staticmethod
    def _say_reading(strips: list[Strip], rows: Sequence[tuple[int, int, Drawn | None]], painter: Painter) -> None:
        """Say so once, in the first row that is still to come and not under the prompt that stays on top."""
        gaps = (position for position, (_, _, drawn) in enumerate(rows) if drawn is None and position)
        for position in islice(gaps, 1):
            strips[position] = painter.spans_strip((Span(" " * MARGIN), Span("reading…", QUIET)))

    def _overlay(self, strips: list[Strip], painter: Painter) -> None:
        """Lay the prompt over the top row and new content over the bottom one."""
        model, viewport = self.canvas.model, self.canvas.viewport
        if not strips or viewport.height < STICKY_HEIGHT:
            return
        # An incomplete reply, and one stopped before it was stored, has no message of its own yet.
        seq = min(viewport.slot + 1, model.count)
        starts_here = viewport.row == 0 and viewport.slot < model.count and is_prompt(model, seq)
        prompt = None if starts_here else prompt_above(model, seq)
        if prompt:
            strips[0] = self._overlays.sticky(prompt, painter)
        if below := self.canvas.below:
            strips[-1] = self._overlays.mark(below, strips[-1], painter)

    def _show_cursor(
        self, strips: list[Strip], rows: Sequence[tuple[int, int, Drawn | None]], painter: Painter
    ) -> None:
        """Mark the block under the cursor and show its actions."""
        chosen = self.canvas.cursor.chosen() if self.canvas.cursor.is_on else None
        marked = self.canvas.cursor.rows() if chosen is not None else None
        if marked is not None:
            for position, (slot, row, _) in enumerate(rows):
                if slot == marked[0] and marked[1] <= row < marked[2]:
                    strips[position] = barred(strips[position], painter)
        if self.canvas.reserved:
            strips.append(self._overlays.keys(self._keys().spans(self.canvas.stack, chosen, painter.width), painter))

    def _keys(self) -> KeyRow:
        """Made when the block cursor is first taken: its modules are not needed for the first frame."""
        if self._key_row is None:
            from phoenix_tui.widgets.transcript.key_row import KeyRow  # noqa: PLC0415 - as said

            self._key_row = KeyRow()
        return self._key_row


def part_strip(part: Part, index: int, painter: Painter) -> Strip:
    """The strip of one line, made once."""
    strips = part.strips
    if len(strips) <= index:
        strips.extend([None] * (index + 1 - len(strips)))
    strip = strips[index]
    if strip is None:
        strip = strips[index] = painter.strip(part.lines[index], dim=part.dim)
    return strip
