"""Canvas of a conversation, seen through one window: changed and visible parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from engine.records import StoredMessage, ToolCallRecord
from phoenix_tui.markdown.code import CodeJob
from phoenix_tui.markdown.lines import StyledLine, cells
from phoenix_tui.widgets.blocks.diff import DiffJob
from phoenix_tui.widgets.transcript.block_cursor import BlockCursor
from phoenix_tui.widgets.transcript.drawing import DrawnPart, fold_action
from phoenix_tui.widgets.transcript.marks import Marks
from phoenix_tui.widgets.transcript.model import TranscriptModel
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
