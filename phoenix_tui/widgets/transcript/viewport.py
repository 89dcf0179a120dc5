"""The row and message at the top, kept while heights above are corrected (docs/decisions/textual.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from phoenix_tui.widgets.transcript.parts import Drawn
from phoenix_tui.widgets.transcript.stack import Stack

ABOVE: Final = 2
"""Rows kept in sight above a block that is brought there: the prompt that stays on top and a blank."""


class Viewport:
    """A window of `height` rows on a stack; it follows the end or holds its place."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.following = True
        """True while the end stays visible as it grows."""
        self.height = 0
        self.slot = 0
        """The message at the top."""
        self.row = 0
        """First visible row of it."""
        self.missing: set[int] = set()
        """Slots near the window that are not in memory, as of the last `place`."""

    def hold(self) -> tuple[int, int]:
        """The place, for telling later whether it moved."""
        return self.slot, self.row

    def move_to(self, y: int) -> None:
        """Go to a row of all rows."""
        heights = self._stack.heights
        self.following = y >= heights.total - self.height
        self.slot, self.row = heights.find(y)

    def stand_at(self, slot: int, row: int = 0) -> None:
        """Put a row of a message at the top, wherever it is: the next `place` measures it."""
        self.following = False
        self.slot, self.row = max(min(slot, self._stack.last), 0), row

    def reveal(self, slot: int, first: int, after: int) -> None:
        """Bring rows of a message into sight with as little movement as will do; a tall block shows its beginning."""
        heights = self._stack.heights
        top, here = heights.top(slot), heights.top(self.slot) + self.row
        begin, end = top + first, top + after
        if begin - ABOVE < here or end - begin > self.height - ABOVE:
            self.move_to(max(begin - ABOVE, 0))
        elif end > here + self.height:
            self.move_to(end - self.height)

    def place(self) -> int:
        """Measure the visible messages and a page above; returns the top row's index among all rows."""
        self.missing.clear()
        heights = self._stack.heights
        if not self.following:
            self._measure_up(self.slot - 1, self.height)
            shown = self._measure_down(self.slot, self.height + self.row)
            self.row = max(min(self.row, heights[self.slot] - 1), 0)
            if shown - self.row >= self.height:
                return heights.top(self.slot) + self.row
        self._measure_up(len(heights) - 1, 2 * self.height)
        y = max(0, heights.total - self.height)
        if not self.following:
            y = min(y, heights.top(self.slot) + self.row)
        self.slot, self.row = heights.find(y)
        return y

    @property
    def has_gap(self) -> bool:
        """True when a visible row belongs to a message that is not in memory, as of the last `place`."""
        heights, slot, left = self._stack.heights, self.slot, self.height + self.row
        while self.missing and left > 0 and slot < len(heights):
            if slot in self.missing:
                return True
            left -= heights[slot]
            slot += 1
        return False

    def rows(self) -> Iterator[tuple[int, int, Drawn | None]]:
        """Slot, row and drawing of every row in sight, top down."""
        heights, slot, row = self._stack.heights, self.slot, self.row
        left = self.height
        while left > 0 and slot < len(heights):
            drawn = self._stack.drawn(slot)
            while row < heights[slot] and left > 0:
                yield slot, row, drawn
                row, left = row + 1, left - 1
            slot, row = slot + 1, 0

    def _measure_up(self, slot: int, rows: int) -> None:
        while slot >= 0 and rows > 0:
            self._measure(slot)
            rows -= self._stack.heights[slot]
            slot -= 1

    def _measure_down(self, slot: int, rows: int) -> int:
        """Measure from `slot` on until `rows` rows are known; returns how many there are."""
        known = 0
        while slot < len(self._stack.heights) and known < rows:
            self._measure(slot)
            known += self._stack.heights[slot]
            slot += 1
        return known

    def _measure(self, slot: int) -> None:
        if self._stack.drawn(slot) is None:
            self.missing.add(slot)
