"""Number of rows of each message, with sums per 512, so that any row is found without adding them all."""

from __future__ import annotations

from array import array
from typing import Final

_CHUNK: Final = 512


class Heights:
    """A row count per slot; unseen ones hold an estimate."""

    def __init__(self, count: int, estimate: int) -> None:
        self._heights = array("l", [estimate]) * count
        self._sums = [min(_CHUNK, count - start) * estimate for start in range(0, count, _CHUNK)]
        self.total = count * estimate
        """All rows."""

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, slot: int) -> int:
        return self._heights[slot]

    def set(self, slot: int, height: int) -> int:
        """Correct one height; returns by how much it grew."""
        growth = height - self._heights[slot]
        if growth:
            self._heights[slot] = height
            self._sums[slot // _CHUNK] += growth
            self.total += growth
        return growth

    def append(self, height: int) -> None:
        """Add a slot at the end."""
        if len(self._heights) % _CHUNK == 0:
            self._sums.append(0)
        self._heights.append(height)
        self._sums[-1] += height
        self.total += height

    def top(self, slot: int) -> int:
        """The first row of a slot."""
        chunk = slot // _CHUNK
        return sum(self._sums[:chunk]) + sum(self._heights[chunk * _CHUNK : slot])

    def find(self, row: int) -> tuple[int, int]:
        """The slot that holds `row` and the row within it; the last one for rows beyond the end."""
        last = len(self._heights) - 1
        if row >= self.total:
            return last, max(self._heights[last] - 1, 0)
        row = max(row, 0)
        chunk = 0
        while row >= self._sums[chunk]:
            row -= self._sums[chunk]
            chunk += 1
        slot = chunk * _CHUNK
        while row >= self._heights[slot]:
            row -= self._heights[slot]
            slot += 1
        return slot, row
