"""The canvas of a conversation and the window on it: its position after changes, moved by rows, pages and jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import ceil
from typing import Final, TypeAlias

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.filter import ANSIToTruecolor
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from engine.records import StoredMessage, ToolCallRecord
from phoenix_tui.markdown.code import CodeJob
from phoenix_tui.markdown.lines import StyledLine, cells
from phoenix_tui.widgets.bases import Still
from phoenix_tui.widgets.blocks.diff import DiffJob
from phoenix_tui.widgets.transcript.block_cursor import BlockCursor
from phoenix_tui.widgets.transcript.drawing import DrawnPart, fold_action
from phoenix_tui.widgets.transcript.marks import Marks
from phoenix_tui.widgets.transcript.model import TranscriptModel, shows_nothing
from phoenix_tui.widgets.transcript.stack import Stack, Viewport

_COLOURED_AT_ONCE: Final = 40
"""Source lines coloured in one slice, about 5 ms."""
RIGHT_MARGIN: Final = 2
"""Cells for the scrollbar, which covers the last column, and a free one before it."""


class PlacedPart(Struct, frozen=True):
    """Position of the window after a change."""

    y: int
    total: int
    first: int | None
    """The first row in sight to be painted again; None where nothing in sight changed."""


class Canvas:
    """All drawn parts of a model, seen through one window."""

    def __init__(self, model: TranscriptModel) -> None:
        self.model = model
        self.stack = Stack(model)
        self.viewport = Viewport(self.stack)
        self.cursor = BlockCursor(self.stack, self.viewport)
        self.marks = Marks(self.stack, self.viewport)
        self.new_below = 0
        """Messages that came while the end was out of sight."""
        self._marked = ""
        """Text of the mark at the bottom."""

    @property
    def below(self) -> str:
        """New content below the window, in words; empty at the end, and without new content."""
        if self.viewport.following:
            return ""
        if self.new_below:
            return f"{self.new_below} new"
        live = self.model.live
        return "new text" if live.pieces and live.stopped is None else ""

    @property
    def reserved(self) -> int:
        """Rows at the bottom that are not the conversation's: the keys of the block cursor."""
        return int(self.cursor.is_on)

    def reset(self) -> None:
        self.stack.reset()
        self.cursor.leave()
        self.marks.forget_place()
        self.viewport.following = True
        self.new_below = 0

    def resize(self, width: int, height: int) -> bool:
        self.viewport.height = height - self.reserved
        changed = self.stack.resize(max(width - RIGHT_MARGIN, 1))
        self.marks.go_to_goal()
        return changed

    def note_new(self, *, counts: bool, follow: bool) -> None:
        self.viewport.following = self.viewport.following or follow
        if counts and not self.viewport.following:
            self.new_below += 1

    def take_history(self, messages: Sequence[StoredMessage], calls: Sequence[ToolCallRecord]) -> None:
        self.model.add_history(messages, calls)
        for message in messages:
            self.stack.forget_run(message.seq)
        self.cursor.go_to_wanted()
        self.marks.go_to_goal()

    def has_plain_code(self) -> bool:
        return any(part.plain is not None for part in self.visible_parts())

    def job_to_lex(self) -> CodeJob | DiffJob | None:
        """Code in sight that is still to be lexed; None when none is."""
        found = (part.plain for part in self.visible_parts())
        waiting = (plain.jobs[0] for plain in found if plain is not None)
        return next((job for job in waiting if not job.is_lexed), None)

    def visible_parts(self) -> Iterator[DrawnPart]:
        heights, slot, left = self.stack.heights, self.viewport.slot, self.viewport.height
        above = self.viewport.row
        while left > 0 and slot < len(heights):
            drawn = self.stack.draw(slot)
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

    def place(self) -> PlacedPart:
        """Take in the model's changes and find the window's place."""
        before = self.viewport.hold()
        changed = self._take_changes()
        y = self.viewport.place()
        if self.viewport.following:
            self.new_below = 0
        heights = self.stack.heights
        if self.viewport.hold() != before:
            return PlacedPart(y, heights.total + self.reserved, 0)
        rows = [heights.top(slot) + row - y for slot, row in changed]
        visible = [max(row, 0) for row in rows if row < self.viewport.height]
        if self._marked != self.below:
            self._marked = self.below
            visible.append(self.viewport.height - 1)
        return PlacedPart(y, heights.total + self.reserved, min(visible, default=None))

    def _take_changes(self) -> list[tuple[int, int]]:
        """Draw the changes again; returns the first changed row, per slot."""
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
        """Colour a slice of code in sight; returns the first row in sight that changed, None when all is coloured."""
        for position, (slot, row, drawn) in enumerate(self.viewport.rows()):
            found = None if drawn is None else drawn.locate(row)
            plain = None if found is None else found[0].plain
            if found is None or plain is None:
                continue
            part, line = found
            try:
                changed = plain.colour(_COLOURED_AT_ONCE)
            except Exception as error:  # noqa: BLE001 - any fault of a block
                self.stack.show_plainly(slot, error)
                return 0
            if changed is not None:
                start, end = changed
                for index in range(start, min(end, len(part.strips))):
                    part.strips[index] = None
                return max(position + start - line, 0)
        return None

    def line_at(self, y: int) -> tuple[int, int, StyledLine] | None:
        for position, (slot, row, drawn) in enumerate(self.viewport.rows()):
            if position == y:
                return None if drawn is None else (slot, row, drawn.line(row))
        return None

    def action_at(self, x: int, y: int) -> str:
        """Action of a click on a visible cell, empty for none."""
        row = next(islice(self.viewport.rows(), y, None), None)
        found = None if row is None or row[2] is None else row[2].locate(row[1])
        if found is None or not 0 <= found[1] < len(found[0].lines):
            return ""
        part, index = found
        for span in part.lines[index].spans:
            x -= cells(span.text)
            if x < 0:
                return span.action
        return "" if part.picture is None else fold_action(part.key)

    def last_foldable(self) -> str:
        """The key of the lowest part in sight that can be folded or opened, empty when there is none."""
        key = ""
        for _, row, drawn in self.viewport.rows():
            found = None if drawn is None else drawn.locate(row)
            if found is not None and found[0].foldable:
                key = found[0].key
        return key


_EIGHTHS: Final = 8
_GLYPHS: Final = ScrollBarRender.VERTICAL_BARS
BarRow: TypeAlias = tuple[int, int]
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


def kinds_of(size: int, start: int, end: int) -> list[BarRow]:
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
        self._made: tuple[Style, int, dict[BarRow, Strip]] | None = None
        """The rows of one pair of colours and one width."""

    def stand(self, total: int, window: int, y: float) -> None:
        """Show a window of a longer text; nothing is painted where the thumb looks the same."""
        self.set_reactive(ScrollBar.window_virtual_size, total)
        self.set_reactive(ScrollBar.window_size, window)
        self.set_reactive(ScrollBar.position, y)
        moved = thumb(self.size.height, total, window, y)
        if moved != self._thumb:
            self._thumb = moved
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
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
        filters = [each for each in self.get_line_filters() if not isinstance(each, ANSIToTruecolor)]
        # The colours are already true colours; the others (NO_COLOR) keep their result with each row.
        found = [self._row(kind, bar.style) for kind in kinds_of(size, *self._thumb)]
        for each in filters:
            found = [row.apply_filter(each, self.background_colors[1]) for row in found]
        return found

    def _row(self, kind: BarRow, colours: Style) -> Strip:
        width = self.size.width
        if self._made is None or self._made[:2] != (colours, width):
            self._made = (colours, width, {})
        made = self._made[2]
        row = made.get(kind)
        if row is None:
            row = made[kind] = Strip([segment_of(kind, width, colours)], width)
        return row


def segment_of(kind: BarRow, width: int, colours: Style) -> Segment:
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
        self._place(whole=True)

    def place_changed(self) -> None:
        """Find the window's place and paint later changes."""
        self._place(whole=False)

    def fit(self) -> None:
        """Rows at the bottom were given away, or came back."""
        self._canvas.viewport.height = self._view.size.height - self._canvas.reserved
        self.place_again()

    def follow_scroll(self, y: int) -> None:
        """Handle a scroll by Textual: new rows are measured, and the visible ones keep their place."""
        # Textual clamps the position to a new height before it reports that height.
        self._canvas.viewport.height = self._view.size.height - self._canvas.reserved
        self._canvas.viewport.move_to(y)
        self._canvas.cursor.come_along()
        self.place_again()

    def row(self, by: int) -> None:
        self._move(self._view.scroll_y + by)

    def page(self, by: int) -> None:
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
        view.set_reactive(Widget.virtual_size, whole)
        view.set_reactive(Widget.scroll_y, y)
        view.set_reactive(Widget.scroll_target_y, y)
        now = self._canvas.model.clock.monotonic()
        if bar or now - self._bar_at >= BAR_SECONDS:
            self._bar_at = now
            self._bar().stand(placed.total, size.height, y)


class _Place(Struct, frozen=True):
    slot: int
    row: int
    count: int
    """Messages there were."""


class ScrollPlaces:
    """The places of the conversations one transcript has shown; those left at their end have none."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def leave(self, canvas: Canvas) -> None:
        record, viewport = canvas.model.conversation, canvas.viewport
        if record is None:
            return
        self._places.pop(record.id, None)
        if not viewport.following:
            self._places[record.id] = _Place(viewport.slot, viewport.row, canvas.model.count)

    def come_back(self, canvas: Canvas) -> bool:
        """Go where the conversation in view was left, in this process or an earlier one; False for its end."""
        record = canvas.model.conversation
        if record is None:
            return False
        place = self._places.get(record.id)
        if place is not None:
            canvas.viewport.stand_at(place.slot, place.row)
            newer = (canvas.model.messages.get(seq) for seq in range(place.count + 1, canvas.model.count + 1))
            canvas.new_below = sum(message is None or not shows_nothing(message) for message in newer)
        elif 0 < record.scroll_seq <= canvas.model.count:
            canvas.viewport.stand_at(record.scroll_seq - 1)
        return not canvas.viewport.following


def seq_at_top(canvas: Canvas) -> int:
    """The message at the top as it is stored, 0 at the end."""
    return 0 if canvas.viewport.following else canvas.viewport.slot + 1
