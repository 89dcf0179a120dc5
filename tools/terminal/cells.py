"""Rows of cells: what a program wrote at which column, and in which look."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Final

from tools.clean import MOST_MARKS, hidden
from tools.terminal.values import TextRun

BLANK: Final = " "
COVERED: Final = ""
"""Cell that the wide character before it covers."""
_NO_WIDTH: Final = frozenset({"Mn", "Me", "Cf", "Cc", "Cs"})


@lru_cache(maxsize=4096)
def width_of(character: str) -> int:
    """Cells that a character takes: 0, 1 or 2; -1 for one that is never shown."""
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    if hidden().match(character):
        return -1
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


@lru_cache(maxsize=4096)
def is_kept(base: str, mark: str) -> bool:
    """True where a character without width may stand on the cell `base`: it neither hides nor reorders."""
    if unicodedata.category(mark) in {"Cc", "Cs"} or mark == "\u200d" or len(base) > MOST_MARKS:
        return False
    return hidden().search(base + mark) is None


class CellRow:
    """One row of the screen."""

    __slots__ = ("chars", "joined", "looks", "styled")

    def __init__(self, *, joined: bool = False) -> None:
        self.chars: list[str] = []
        self.looks: list[str] = []
        self.joined = joined
        """True where it goes on the row above: the line was longer than the screen."""
        self.styled = False
        """True once a cell may have a look of its own."""

    def put(self, column: int, cells: Sequence[str], look: str) -> None:
        """Write cells from a column on."""
        if column > len(self.chars):
            self.pad(column)
        end = column + len(cells)
        self._split(column)
        self._split(end)
        self.chars[column:end] = cells
        self.looks[column:end] = [look] * len(cells)
        self.styled = self.styled or bool(look)

    def mark(self, column: int, character: str) -> None:
        """Put a character without width on the cell before a column."""
        place = min(column, len(self.chars)) - 1
        if place > 0 and self.chars[place] == COVERED:
            place -= 1
        if place >= 0 and is_kept(self.chars[place], character):
            self.chars[place] += character

    def pad(self, column: int) -> None:
        """Fill it with blanks up to a column."""
        missing = column - len(self.chars)
        self.chars += [BLANK] * missing
        self.looks += [""] * missing

    def cut(self, column: int) -> None:
        """Erase from a column on."""
        self._split(column)
        del self.chars[column:], self.looks[column:]

    def erase(self, start: int, end: int, look: str = "") -> None:
        """Put blanks in place of cells that are there."""
        if end >= len(self.chars) and not look:
            self.cut(start)
        elif start < (end := min(end, max(len(self.chars), end if look else 0))):
            self.put(start, [BLANK] * (end - start), look)

    def delete(self, column: int, count: int) -> None:
        """Take cells out; those behind move to the left."""
        self._split(column)
        self._split(column + count)
        del self.chars[column : column + count], self.looks[column : column + count]

    def insert(self, column: int, count: int, columns: int) -> None:
        """Put blanks before a column; what moves beyond the last of `columns` is gone."""
        self._split(column)
        if column < len(self.chars):
            self.chars[column:column] = [BLANK] * count
            self.looks[column:column] = [""] * count
            self.cut(columns)

    def text(self, *, whole: bool) -> str:
        """Return the characters; without `whole` no plain blanks at the end."""
        end = len(self.chars)
        while not whole and end and self.chars[end - 1] == BLANK and not self.looks[end - 1]:
            end -= 1
        return "".join(self.chars[:end])

    def runs(self, row: int, offset: int) -> list[TextRun]:
        """Return pieces with a look of their own, as parts of the line `row` from the character `offset` on."""
        if not self.styled:
            return []
        found: list[TextRun] = []
        place = offset
        for look, cells in groupby(zip(self.looks, self.chars, strict=True), key=lambda cell: cell[0]):
            end = place + sum(len(char) for _, char in cells)
            if look and end > place:
                found.append(TextRun(row, place, end, look))
            place = end
        return found

    def _split(self, column: int) -> None:
        """Let no wide character stand across the left edge of a column."""
        if 0 < column < len(self.chars) and self.chars[column] == COVERED:
            self.chars[column - 1] = self.chars[column] = BLANK
