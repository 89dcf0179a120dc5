"""The visible rows of a transcript: painted once until dirty, with overlays, and kept while messages are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Final, TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.filter import ANSIToTruecolor
from textual.geometry import Region
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from engine.machine.messages import TextBlock
from engine.records import StoredMessage, ToolCallRecord
from phoenix_tui.keys import active_keys
from phoenix_tui.markdown.lines import MARGIN, QUIET, Span, Surface, TextStyle, TextTone, cells
from phoenix_tui.widgets.blocks.speech import sticky_prompt
from phoenix_tui.widgets.transcript.block_cursor import KeyRow, is_human
from phoenix_tui.widgets.transcript.drawing import Drawn, DrawnPart, locate_rows
from phoenix_tui.widgets.transcript.marks import paint_selection, row_number
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.painter import Painter, colours_of
from phoenix_tui.widgets.transcript.scroller import Canvas, Scroller

BAR: Final = "▌"
"""Mark left of every row of the block under the cursor."""
_FAR: Final = 400
"""Messages looked through for the prompt above the window."""


def prompt_above(model: TranscriptModel, slot: int) -> str | None:
    """The person's message that is answered at `slot`, None where it is not in memory."""
    for seq in range(slot, max(slot - _FAR, 0), -1):
        message = model.messages.get(seq)
        if message is None:
            return None
        if is_human(model, seq):
            return next((block.text for block in message.blocks if isinstance(block, TextBlock)), None)
    return None


class Overlays:
    """Makes the rows laid over others; the same object for the same row, so it is rendered once."""

    def __init__(self) -> None:
        self._sticky: tuple[tuple[str, Painter], Strip] | None = None
        self._mark: tuple[tuple[str, Strip, Painter], Strip] | None = None
        self._keys: tuple[tuple[tuple[Span, ...], Painter], Strip] | None = None

    def sticky(self, text: str, painter: Painter) -> Strip:
        key = (text, painter)
        if self._sticky is None or self._sticky[0] != key:
            prompt = sticky_prompt(text, painter.width)
            spans = [span._replace(look=span.look._replace(surface=Surface.CODE)) for span in prompt]
            fill = painter.width - sum(cells(span.text) for span in spans)
            spans.append(Span(" " * max(fill, 0), TextStyle(surface=Surface.CODE)))
            self._sticky = (key, painter.spans_strip(spans))
        return self._sticky[1]

    def keys(self, spans: Sequence[Span], painter: Painter) -> Strip:
        key = (tuple(spans), painter)
        if self._keys is None or self._keys[0] != key:
            tinted = [span._replace(look=span.look._replace(surface=Surface.CODE)) for span in spans]
            fill = painter.width - sum(cells(span.text) for span in tinted)
            tinted.append(Span(" " * max(fill, 0), TextStyle(surface=Surface.CODE)))
            self._keys = (key, painter.spans_strip(tinted))
        return self._keys[1]

    def mark(self, label: str, under: Strip, painter: Painter) -> Strip:
        """A row with the new content below at its right end."""
        key = (label, under, painter)
        if self._mark is None or self._mark[0][0] != label or self._mark[0][1] is not under:
            text = f" ↓ {active_keys.hint(label, active_keys.key('bottom'))} "
            if cells(text) >= painter.width:
                return under
            room = painter.width - cells(text) - 1  # the scrollbar covers the last column
            style = painter.style(TextStyle(TextTone.YOU, Surface.CODE, bold=True)) + Style(
                meta={"@click": "view('bottom')"}
            )
            self._mark = (
                key,
                Strip([*under.crop(0, room), Segment(text, style), *under.crop(painter.width - 1)], painter.width),
            )
        return self._mark[1]


def add_cursor_bar(strip: Strip, painter: Painter) -> Strip:
    """A row of the block under the cursor: its first column is the cursor's bar."""
    return Strip([Segment(BAR, painter.style(TextStyle(TextTone.YOU, bold=True))), *strip.crop(1)], strip.cell_length)


PictureStrip: TypeAlias = Callable[[DrawnPart, int, Painter], Strip | None]
"""A row of a part that shows an image; None while it is not there."""
STICKY_HEIGHT: Final = 6
"""Rows a view must have before one is given to the prompt."""


class VisibleRows:
    """Paints the visible part of a canvas."""

    def __init__(self, canvas: Canvas, picture_strip: PictureStrip) -> None:
        self.canvas = canvas
        self._picture_strip = picture_strip
        self._overlays = Overlays()
        self._key_row = KeyRow()

    @property
    def height(self) -> int:
        return self.canvas.viewport.height + self.canvas.reserved

    def strips(self, painter: Painter, selection: Selection | None, *, is_late: bool = False) -> list[Strip]:
        """A strip for each row in sight; where messages are `is_late`, a row says that they are being read."""
        viewport, blank = self.canvas.viewport, painter.spans_strip(())
        rows = list(viewport.rows())
        strips: list[Strip] = []
        for (slot, row, _), found in zip(rows, locate_rows(rows), strict=True):
            try:
                strips.append(self._row_strip(found, row, slot, painter, selection) or blank)
            except Exception as error:  # noqa: BLE001 - any fault of a block
                self.canvas.stack.show_plainly(slot, error)
                strips.append(blank)
        strips.extend([blank] * (viewport.height - len(strips)))
        if is_late:
            # Said once, in the first row that is still to come and not under the prompt that stays on top.
            gaps = (position for position, (_, _, drawn) in enumerate(rows) if drawn is None and position)
            for position in islice(gaps, 1):
                strips[position] = painter.spans_strip((Span(" " * MARGIN), Span("reading…", QUIET)))
        self._overlay(strips, painter)
        self._show_cursor(strips, rows, painter)
        return strips

    def _row_strip(
        self, found: tuple[DrawnPart, int] | None, row: int, slot: int, painter: Painter, selection: Selection | None
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
        return paint_selection(strip, part.lines[index].text, span, painter.selection)

    def _overlay(self, strips: list[Strip], painter: Painter) -> None:
        """Lay the prompt over the top row and new content over the bottom one."""
        model, viewport = self.canvas.model, self.canvas.viewport
        if not strips or viewport.height < STICKY_HEIGHT:
            return
        # An incomplete reply, and one stopped before it was stored, has no message of its own yet.
        seq = min(viewport.slot + 1, model.count)
        starts_here = viewport.row == 0 and viewport.slot < model.count and is_human(model, seq)
        prompt = None if starts_here else prompt_above(model, seq)
        if prompt:
            strips[0] = self._overlays.sticky(prompt, painter)
        if below := self.canvas.below:
            strips[-1] = self._overlays.mark(below, strips[-1], painter)

    def _show_cursor(
        self, strips: list[Strip], rows: Sequence[tuple[int, int, Drawn | None]], painter: Painter
    ) -> None:
        """Mark the block under the cursor and show its actions."""
        chosen = self.canvas.cursor.find_chosen() if self.canvas.cursor.is_on else None
        marked = self.canvas.cursor.rows() if chosen is not None else None
        if marked is not None:
            for position, (slot, row, _) in enumerate(rows):
                if slot == marked[0] and marked[1] <= row < marked[2]:
                    strips[position] = add_cursor_bar(strips[position], painter)
        if self.canvas.reserved:
            strips.append(self._overlays.keys(self._key_row.spans(self.canvas.stack, chosen, painter.width), painter))


def part_strip(part: DrawnPart, index: int, painter: Painter) -> Strip:
    strips = part.strips
    if len(strips) <= index:
        strips.extend([None] * (index + 1 - len(strips)))
    strip = strips[index]
    if strip is None:
        strip = strips[index] = painter.strip(part.lines[index], dim=part.dim)
    return strip


OlderMessages: TypeAlias = tuple[Sequence[StoredMessage], Sequence[ToolCallRecord]]
Loader: TypeAlias = Callable[[int, int], Awaitable[OlderMessages | None]]
"""`Conversation.history`: before_seq and limit -> messages and their calls; None where they cannot be read now."""
WINDOW: Final = 64
"""Messages loaded at once."""
AGAIN_SECONDS: Final = 2.0
"""Seconds until rows that could not be read are requested again."""


class HistoryReader:
    """Reads visible messages that the model lacks; without a loader none."""

    def __init__(self, view: Widget, canvas: Canvas, scroller: Scroller) -> None:
        self._view = view
        self._canvas = canvas
        self._scroller = scroller
        self._loader: Loader | None = None
        self._absent: set[int] = set()
        """Slots that were requested in vain."""
        self.is_reading = False

    def use(self, loader: Loader | None) -> None:
        self._loader = loader
        self.reset()

    def reset(self) -> None:
        self._absent.clear()

    def see_to(self) -> None:
        """Read the next window of messages that are missing in sight."""
        window = window_for(self._canvas.viewport.missing - self._absent, self._canvas.model.count)
        if window is not None and self._loader is not None and not self.is_reading and self._view.is_mounted:
            self.is_reading = True
            self._view.run_worker(self._read(self._loader, *window), group="history")

    async def _read(self, loader: Loader, before_seq: int, limit: int) -> None:
        try:
            history = await loader(before_seq, limit)
        finally:
            self.is_reading = False
        if history is None:
            self._view.set_timer(AGAIN_SECONDS, self.see_to)
            return
        found = {message.seq - 1 for message in history[0]}
        self._absent.update(slot for slot in range(before_seq - 1 - limit, before_seq - 1) if slot not in found)
        self._canvas.take_history(*history)
        self._scroller.place_again()


def window_for(missing: Iterable[int], count: int) -> tuple[int, int] | None:
    """The `before_seq` and `limit` of one query around the newest missing slots; None when nothing is missing."""
    slots = [slot for slot in missing if slot < count]
    if not slots:
        return None
    newest = max(slots)
    oldest = max(min(slots), newest - WINDOW // 2)
    return newest + 2, min(max(newest - oldest + 1 + WINDOW // 2, WINDOW // 2), newest + 1)


PATIENCE: Final = 0.15
"""Seconds after which a row says that messages are being read."""


class LastWholeRows:
    """Holds the last rows that were whole; nothing of it runs while nothing is read."""

    def __init__(self, view: Widget, canvas: Canvas, history: HistoryReader) -> None:
        self._view = view
        self._canvas = canvas
        self._history = history
        self.is_late = False
        """True while a row says that visible messages are still being read."""
        self._whole: tuple[Painter, list[Strip]] | None = None
        self._holding: Timer | None = None

    def forget(self) -> None:
        self._whole = None
        self._let_go()

    def see_to(self) -> None:
        """The window was placed: hold the rows of before while some in sight are still to come."""
        if not self._history.is_reading or not self._canvas.viewport.has_gap:
            self._let_go()
        elif self._holding is None and not self.is_late:
            self._holding = self._view.set_timer(PATIENCE, self._say_so)

    def keep_painted(self, rows: list[Strip], painter: Painter) -> None:
        if not self._canvas.viewport.has_gap:
            self._whole = (painter, rows)

    def instead(self, painter: Painter, height: int) -> list[Strip] | None:
        """The rows of before, None where those in sight are to be painted."""
        if self._holding is None or self._whole is None:
            return None
        made_by, rows = self._whole
        return rows if made_by is painter and len(rows) == height else None

    def _say_so(self) -> None:
        self._let_go()
        self.is_late = True
        self._view.refresh()

    def _let_go(self) -> None:
        self.is_late = False
        if self._holding is not None:
            self._holding.stop()
            self._holding = None


class PaintedRows:
    """Hands unchanged rows out as the very same strips.

    They never pass Textual's style cache, so line filters (NO_COLOR) are applied here.
    """

    def __init__(self, view: Widget, visible: VisibleRows, kept: LastWholeRows) -> None:
        self._view = view
        self._visible = visible
        self._kept = kept
        self._painter: Painter | None = None
        self._is_stale = True
        """True when the theme may have changed since."""
        self._rows: list[Strip] | None = None

    def forget(self) -> None:
        self._rows = None

    def restyle(self) -> None:
        """Colours may differ: painted rows are forgotten, lines and heights stay."""
        self._is_stale = True
        self._rows = None

    def within(self, crop: Region, width: int) -> list[Strip]:
        rows = self._rows
        if rows is None:
            if self._painter is None or self._is_stale or self._painter.width != width:
                colours, self._is_stale = colours_of(self._view), False
                if self._painter is None or (self._painter.colours, self._painter.width) != (colours, width):
                    self._painter = Painter(colours, width)
                    self._visible.canvas.stack.drop_strips()
            rows = self._rows = self._paint(self._painter)
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
        self._kept.keep_painted(rows, painter)
        return rows
