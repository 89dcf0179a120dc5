"""One file's change, to scroll through: side by side where there is room, in the colours of its code."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from textual import events
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from phoenix_tui.markdown.lines import BLANK, MARGIN, QUIET, Span, StyledLine, Surface
from phoenix_tui.widgets.blocks.diff import SPLIT_FROM, DiffBlock, diff_block
from phoenix_tui.widgets.transcript.marks import paint_selection
from phoenix_tui.widgets.transcript.painter import COMPONENTS, Painter, colours_of, css_of
from tools.contract import DiffDisplay

COLOURED: Final = 20
"""Source lines that are coloured at once, as in the transcript."""
REST: Final = 0.02
"""Seconds between two of these."""
CONTEXT: Final = 3
"""Rows that stay in sight above a change that is gone to."""
MARKS: Final = frozenset({Surface.ADDED, Surface.REMOVED, Surface.ADDED_WORDS, Surface.REMOVED_WORDS})


class DiffView(ScrollView):
    """Shows a change, or words in its place. Takes no keys of its own."""

    can_focus = False
    DEFAULT_CSS = f"""
    DiffView {{
        background: $background; color: $foreground; height: 1fr;
        overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1;
    }}
    {css_of("DiffView")}
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {*COMPONENTS}

    def __init__(self) -> None:
        super().__init__()
        self._display: DiffDisplay | None = None
        self._words = ""
        self._lines: list[StyledLine] = []
        self._painter: Painter | None = None
        self._unified = False
        self._width = 0
        self._block: DiffBlock | None = None

    def show(self, display: DiffDisplay | None, words: str = "") -> None:
        """A change, with a remark at the right of its heading; without one the words alone."""
        self._display, self._words = display, words
        self.scroll_to(y=0, animate=False, force=True)
        self._lay_out()

    def turn(self) -> None:
        """Lines one below the other although there is room beside each other, and back."""
        self._unified = not self._unified
        self._lay_out()

    def to_change(self, by: int) -> bool:
        """Scroll to the next change, or the one before; False where there is none."""
        top = round(self.scroll_y)
        starts = [max(row - CONTEXT, 0) for row in self._changes()]
        reached = [row for row in starts if (row > top if by > 0 else row < top)]
        if not reached or (by > 0 and top >= self.max_scroll_y):
            return False
        self.scroll_to(y=reached[0] if by > 0 else reached[-1], animate=False, force=True)
        return True

    def visible_change(self) -> int:
        """The first change that is in sight, counted from 0; with none in sight the one above."""
        top = round(self.scroll_y)
        rows = self._changes()
        return next((place for place, row in enumerate(rows) if row >= top), max(len(rows) - 1, 0))

    def on_resize(self, _: events.Resize) -> None:
        if self.scrollable_content_region.width != self._width:
            self._lay_out()

    def notify_style_update(self) -> None:
        self._painter = None
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        place = y + round(self.scroll_y)
        line = self._lines[place] if place < len(self._lines) else BLANK
        width = self.scrollable_content_region.width
        if self._painter is None or self._painter.width != width:
            self._painter = Painter(colours_of(self), width)
        painter = self._painter
        strip = painter.strip(line)
        span = self.text_selection.get_span(place) if self.text_selection is not None else None
        if span is not None:
            strip = paint_selection(strip, line.text, span, painter.selection)
        return strip.apply_offsets(0, place)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        text = "\n".join(line.text.rstrip() for line in self._lines)
        return selection.extract(text), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def _changes(self) -> list[int]:
        marked = [any(span.look.surface in MARKS for span in line.spans) for line in self._lines]
        return [row for row, one in enumerate(marked) if one and not (row and marked[row - 1])]

    def _lay_out(self) -> None:
        self._width = width = self.scrollable_content_region.width
        if not width:
            return
        self._block = None
        if self._display is None:
            self._lines = [StyledLine((Span(" " * MARGIN), Span(self._words, QUIET)))]
        else:
            room = min(width, SPLIT_FROM - 1) if self._unified else width
            self._block = block = diff_block(self._display, room, is_open=True, right=self._words)
            self._lines = block.lines
            self.run_worker(self._colour(block), group="colour")  # if exclusive, one could end before it began
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    async def _colour(self, block: DiffBlock) -> None:
        """Colour behind the first frame; no key waits for the lexing process."""
        for job in list(block.colours.jobs):
            await asyncio.to_thread(job.lex)
        while block is self._block and (changed := block.colours.colour(COLOURED)) is not None:
            first, after = changed
            if first < self.scroll_y + self.size.height and after > self.scroll_y:
                self.refresh()
            await asyncio.sleep(REST)
