"""The rows in sight: what changed since the last frame, and the strips of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct
from textual.color import Color
from textual.filter import LineFilter
from textual.selection import Selection
from textual.strip import Strip

from phoenix_tui.markdown.code import is_loaded
from phoenix_tui.markdown.lines import MARGIN, QUIET, Line, Span
from phoenix_tui.widgets.transcript.block_cursor import BlockCursor
from phoenix_tui.widgets.transcript.marks import Marks
from phoenix_tui.widgets.transcript.model import TranscriptModel
from phoenix_tui.widgets.transcript.overlays import Overlays, barred, is_prompt, prompt_above
from phoenix_tui.widgets.transcript.painter import Painter
from phoenix_tui.widgets.transcript.parts import Drawn, Part, located
from phoenix_tui.widgets.transcript.selecting import painted, row_number
from phoenix_tui.widgets.transcript.stack import Stack
from phoenix_tui.widgets.transcript.viewport import Viewport

if TYPE_CHECKING:
    from phoenix_tui.widgets.transcript.key_row import KeyRow

_COLOURED_AT_ONCE = 40
"""Source lines coloured in one slice, about 5 ms."""
RIGHT_MARGIN = 2
"""The scrollbar, which lies over the last column, and one cell free before it."""
STICKY_HEIGHT = 6
"""Rows a view must have before one is given to the prompt."""


class Placed(Struct, frozen=True):
    """Where the window stands after a change."""

    y: int
    total: int
    first: int | None
    """The first row in sight to be painted again; None where nothing in sight changed."""


class Canvas:
    """Everything drawn of a model, seen through one window."""

    def __init__(self, model: TranscriptModel) -> None:
        self.model = model
        self.stack = Stack(model)
        self.viewport = Viewport(self.stack)
        self.cursor = BlockCursor(self.stack, self.viewport)
        self.marks = Marks(self.stack, self.viewport)
        self._key_row: KeyRow | None = None
        self.overlays = Overlays()
        self.picture_strip: Callable[[Part, int, Painter], Strip | None] = _no_picture
        """A row of a part that shows an image; set by whoever has the pictures."""
        self.new_below = 0
        """Messages that came while the end was out of sight."""
        self.is_reading = False
        """Whether a row says that messages in sight are still being read."""
        self._marked = 0
        """What the mark at the bottom says."""

    @property
    def reserved(self) -> int:
        """Rows at the bottom that are not the conversation's: the keys of the block cursor."""
        return int(self.cursor.is_on)

    def reset(self) -> None:
        """Show another conversation from its end."""
        self.stack.reset()
        self.cursor.leave()
        self.marks.forget_place()
        self.viewport.following = True
        self.new_below = 0

    def resize(self, width: int, height: int) -> bool:
        """Take another size; True when rows are broken anew."""
        self.viewport.height = height - self.reserved
        changed = self.stack.resize(max(width - RIGHT_MARGIN, 1))
        self.marks.loaded()
        return changed

    def note_new(self, *, counts: bool, follow: bool) -> None:
        """A message was saved; one's own brings the end into sight."""
        self.viewport.following = self.viewport.following or follow
        if counts and not self.viewport.following:
            self.new_below += 1

    def forget_part(self, key: str) -> None:
        """Draw a part anew."""
        self.stack.forget_part(key)

    def has_plain_code(self) -> bool:
        """Whether code in sight is still to be coloured."""
        return any(part.plain is not None for part in self.parts_in_sight())

    def language_to_load(self) -> str:
        """The language of code in sight that waits for its patterns; empty when none does."""
        found = (part.plain for part in self.parts_in_sight())
        waiting = (plain.jobs[0].language for plain in found if plain is not None)
        return next((language for language in waiting if not is_loaded(language)), "")

    def parts_in_sight(self) -> Iterator[Part]:
        """Each part that has a row in the window, top down."""
        heights, slot, left = self.stack.heights, self.viewport.slot, self.viewport.height
        above = self.viewport.row
        while left > 0 and slot < len(heights):
            drawn = self.stack.drawn(slot)
            for part in () if drawn is None else drawn.parts:
                height = part.height()
                if height > above and left > 0:
                    yield part
                    left -= height - above
                above = max(above - height, 0)
            if drawn is None:
                left -= max(heights[slot] - above, 0)
                above = 0
            slot += 1

    def place(self) -> Placed:
        """Take in what changed in the model and find the window's place."""
        before = self.viewport.hold()
        changed = self._take_changes()
        y = self.viewport.place()
        if self.viewport.following:
            self.new_below = 0
        heights = self.stack.heights
        if self.viewport.hold() != before:
            return Placed(y, heights.total + self.reserved, 0)
        rows = [heights.top(slot) + row - y for slot, row in changed]
        visible = [max(row, 0) for row in rows if row < self.viewport.height]
        if self._marked != self.new_below:
            self._marked = self.new_below
            visible.append(self.viewport.height - 1)
        return Placed(y, heights.total + self.reserved, min(visible, default=None))

    def _take_changes(self) -> list[tuple[int, int]]:
        """Draw again what changed; gives the first row that did, per slot."""
        self.stack.extend()
        slots, calls = set(self.model.dirty), set(self.model.calls.changed)
        slots |= {slot for call in self.model.calls.grown if (slot := self.model.calls.slot(call)) is not None}
        self.model.calls.grown.clear()
        self.model.dirty.clear()
        self.model.calls.changed.clear()
        changed = [(slot, self.stack.redraw(slot)) for slot in sorted(slots) if slot <= self.stack.last]
        redrawn = (self.stack.redraw_call(call_id) for call_id in calls)
        return changed + [place for place in redrawn if place is not None]

    def colour(self) -> int | None:
        """Colour a slice of code in sight; gives the first row in sight that changed, None when all is coloured."""
        for position, (_, row, drawn) in enumerate(self.viewport.rows()):
            found = None if drawn is None else drawn.locate(row)
            plain = None if found is None else found[0].plain
            if found is None or plain is None:
                continue
            part, line = found
            changed = plain.colour(_COLOURED_AT_ONCE)
            if changed is not None:
                start, end = changed
                for index in range(start, min(end, len(part.strips))):
                    part.strips[index] = None
                return max(position + start - line, 0)
        return None

    def strips(
        self, painter: Painter, selection: Selection | None, filters: Sequence[LineFilter], background: Color
    ) -> list[Strip]:
        """A strip for each row in sight."""
        blank = painter.spans_strip(())
        rows = list(self.viewport.rows())
        strips = [
            self._row_strip(found, row, slot, painter, selection) or blank
            for (slot, row, _), found in zip(rows, located(rows), strict=True)
        ]
        strips.extend([blank] * (self.viewport.height - len(strips)))
        if self.is_reading:
            self._say_reading(strips, rows, painter)
        self._overlay(strips, painter)
        self._show_cursor(strips, rows, painter)
        for line_filter in filters:
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return strips

    def line_at(self, y: int) -> tuple[int, int, Line] | None:
        """Slot, row and line at a row in sight."""
        for position, (slot, row, drawn) in enumerate(self.viewport.rows()):
            if position == y:
                return None if drawn is None else (slot, row, drawn.line(row))
        return None

    def last_foldable(self) -> str:
        """The key of the lowest part in sight that can be folded or opened, empty when there is none."""
        key = ""
        for _, row, drawn in self.viewport.rows():
            found = None if drawn is None else drawn.locate(row)
            if found is not None and found[0].foldable:
                key = found[0].key
        return key

    def _row_strip(
        self, found: tuple[Part, int] | None, row: int, slot: int, painter: Painter, selection: Selection | None
    ) -> Strip | None:
        if found is None or found[1] < 0 or found[1] >= len(found[0].lines):
            return None
        part, index = found
        strip = (part.picture and self.picture_strip(part, index, painter)) or part_strip(part, index, painter)
        if self.marks.words:
            strip = self.marks.paint(strip, part, index, painter)
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
        """Lay the prompt over the top row and what is new over the bottom one."""
        if not strips or self.viewport.height < STICKY_HEIGHT:
            return
        # What is still being written, and what was stopped before it was stored, has no message of its own yet.
        seq = min(self.viewport.slot + 1, self.model.count)
        starts_here = self.viewport.row == 0 and self.viewport.slot < self.model.count and is_prompt(self.model, seq)
        prompt = None if starts_here else prompt_above(self.model, seq)
        if prompt:
            strips[0] = self.overlays.sticky(prompt, painter)
        if not self.viewport.following and self.new_below:
            strips[-1] = self.overlays.mark(f"{self.new_below} new", strips[-1], painter)

    def _show_cursor(
        self, strips: list[Strip], rows: Sequence[tuple[int, int, Drawn | None]], painter: Painter
    ) -> None:
        """Mark the block under the cursor and say what can be done with it."""
        chosen = self.cursor.chosen() if self.cursor.is_on else None
        marked = self.cursor.rows() if chosen is not None else None
        if marked is not None:
            for position, (slot, row, _) in enumerate(rows):
                if slot == marked[0] and marked[1] <= row < marked[2]:
                    strips[position] = barred(strips[position], painter)
        if self.reserved:
            strips.append(self.overlays.keys(self._keys().spans(self.stack, chosen, painter.width), painter))

    def _keys(self) -> KeyRow:
        """Made when the block cursor is first taken: its modules are not needed for the first frame."""
        if self._key_row is None:
            from phoenix_tui.widgets.transcript.key_row import KeyRow  # noqa: PLC0415 - as said

            self._key_row = KeyRow()
        return self._key_row


def _no_picture(_: Part, __: int, ___: Painter) -> Strip | None:
    return None


def part_strip(part: Part, index: int, painter: Painter) -> Strip:
    """The strip of one line, made once."""
    strips = part.strips
    if len(strips) <= index:
        strips.extend([None] * (index + 1 - len(strips)))
    strip = strips[index]
    if strip is None:
        strip = strips[index] = painter.strip(part.lines[index], dim=part.dim)
    return strip
