"""Plain text of any size as rows, one by one: no line and no text is ever broken in one step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from phoenix_tui.markdown.code import CodeJob
from phoenix_tui.markdown.lines import StyledLine
from phoenix_tui.markdown.wrap import breaks
from tools.clean_pieces import PieceCleaner

PIECE: Final = 4_000
"""Characters that are cleaned and broken in one step, about 5 ms where they are wide ones."""
ROWS_AT_ONCE: Final = 500
"""Rows of a long text in one step, about 5 ms."""
UNSEEN: Final = 64_000
"""Invisible characters replaced by one empty row, so that each step is bounded."""
WORK_AT_ONCE: Final = 24_000
"""Characters of them: rows full of combining marks have thousands."""


def plain_rows(text: str, width: int, *, hard: bool = False) -> Iterator[tuple[int, str, str | None]]:
    """Rows of at most `width` cells: the number of their source line, their characters, how they hang on the row above.

    A tab goes to the next multiple of 4. A line of more than `PIECE` characters is broken from row to row, so a row
    that is longer than that, full of marks that take no room, ends there.
    """
    number, rest, joint = 0, "", None
    for shown in _cleaned(text):
        *whole, rest = (rest + shown).split("\n")
        for line in whole:
            for row, hangs in _rows(line, width, hard, joint):
                yield number, row, hangs
            number, joint = number + 1, None
        if len(rest) > PIECE or not shown:
            *rows, (row, hangs) = _rows(rest, width, hard, joint)
            for done, before in rows:
                yield number, done, before
            rest, joint = row, hangs
            if not rows:
                yield number, row, hangs
                rest, joint = "", ""
    for row, hangs in _rows(rest, width, hard, joint):
        yield number, row, hangs


def _cleaned(text: str) -> Iterator[str]:
    """The visible pieces, and an empty one for each `UNSEEN` invisible characters."""
    cleaner, unseen = PieceCleaner(), 0
    for start in range(0, len(text), PIECE):
        shown = cleaner.feed(text[start : start + PIECE])
        unseen = 0 if shown else unseen + PIECE
        if shown or unseen >= UNSEEN:
            unseen = 0
            yield shown
    if end := cleaner.end():
        yield end


def _rows(line: str, width: int, hard: bool, joint: str | None) -> list[tuple[str, str | None]]:
    shown = line.expandtabs(4) if "\t" in line else line
    rows = breaks(shown, max(width, 1), hard=hard)
    return [(shown[row.start : row.end], joint if not place else row.joint) for place, row in enumerate(rows)]


class LongText:
    """The lines of a long text, of which those beyond the first step are laid out while it is in sight."""

    jobs: tuple[CodeJob, ...] = ()
    """Empty: there is no code to colour."""

    def __init__(self, lines: list[StyledLine], rows: Iterable[StyledLine]) -> None:
        self.lines = lines
        self._rows = iter(rows)
        self.waiting = True
        """True while some of it is not laid out."""
        self.more()

    def more(self) -> int:
        """Lay out the next step; returns the index of the first line that may have changed."""
        first, work = len(self.lines), 0
        for line in islice(self._rows, ROWS_AT_ONCE):
            self.lines.append(line)
            work += len(line.text)
            if work > WORK_AT_ONCE:
                return first
        self.waiting = len(self.lines) - first == ROWS_AT_ONCE
        return first

    def colour(self, limit: int) -> tuple[int, int] | None:
        """Return None: there is no code to colour."""
        return None
