"""The sequences that turn one state of the screen into another, in as few bytes as it takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from operator import ne
from typing import Final

from phoenix_tui.terminal.cells import CellRow
from phoenix_tui.terminal.sgr import blank_code, change_of_style, is_erasable, look_of

_GAP: Final = 5
"""Unchanged cells that are written again: a move over them takes as many bytes."""
_ERASED: Final = 9
"""Blanks from which on erasing them and moving on is shorter than writing them."""


class RowWriter:
    """Collects sequences; tracks the cursor and the style."""

    def __init__(self, columns: int, *, erases: bool) -> None:
        self._columns = columns
        self._erases = erases
        self._out: list[str] = []
        self._code = ""
        self._at: tuple[int, int] | None = None
        """Row and column of the cursor; None where that is not sure."""

    def text(self) -> str:
        """Return the collected text, with the style reset; empty without changes."""
        self._style("")
        return "".join(self._out)

    def scroll(self, top: int, bottom: int, lines: int) -> None:
        """Move the rows from `top` to before `bottom` up by `lines`, or down by a negative number.

        New rows are blank and without a style.
        """
        self._style("")
        turn = f"{lines}M" if lines > 0 else f"{-lines}L"
        self._out.append(f"\x1b[{top + 1};{bottom}r\x1b[{top + 1};1H\x1b[{turn}\x1b[r")
        self._at = None

    def change(self, y: int, old: CellRow, new: CellRow) -> None:
        """Write the differences between two states of a row."""
        for start, end in _runs(old, new):
            self._write(y, start, end, new)

    def _write(self, y: int, start: int, end: int, row: CellRow) -> None:
        cells, codes = row.cells, row.codes
        odd = row.odd_columns()
        x = start
        while x < end:
            blanks = _blanks_from(x, end, row)
            if blanks >= _ERASED and self._erase(y, x, blanks, codes[x]):
                x += blanks
                continue
            self._move(y, x)
            is_odd = x in odd
            stop = x + 1 if is_odd else _same_from(x, min((each for each in odd if x < each < end), default=end), row)
            while stop < self._columns and not cells[stop]:
                stop += 1
            text = "".join(cells[x:stop])
            self._style_of(text, codes[x])
            self._out.append(text)
            # Behind the last column a terminal waits to wrap; behind an odd character the position is unknown.
            self._at = (y, stop) if stop < self._columns and not is_odd else None
            x = stop

    def _erase(self, y: int, x: int, count: int, code: str) -> bool:
        """Erase blanks where the terminal then shows the same as written ones."""
        ground = blank_code(code)
        if not is_erasable(code) or not (self._erases or not ground):
            return False
        self._move(y, x)
        if look_of(self._code).ground != ground or not is_erasable(self._code):
            self._style(ground)
        self._out.append("\x1b[K" if x + count == self._columns else f"\x1b[{count}X")
        return True

    def _move(self, y: int, x: int) -> None:
        if self._at == (y, x):
            return
        ahead = x - self._at[1] if self._at is not None and self._at[0] == y else 0
        if ahead > 0:
            self._out.append(f"\x1b[{ahead if ahead > 1 else ''}C")
        else:
            self._out.append(f"\x1b[{y + 1}{f';{x + 1}' if x else ''}H")
        self._at = (y, x)

    def _style_of(self, text: str, code: str) -> None:
        """The style of a text; blanks need no other where they look the same in the one before."""
        if text.isspace() and is_erasable(code) and is_erasable(self._code):
            if look_of(self._code).ground != look_of(code).ground:
                self._style(blank_code(code))
            return
        self._style(code)

    def _style(self, code: str) -> None:
        change = change_of_style(self._code, code)
        if change:
            self._out.append(change)
        self._code = code


def _runs(old: CellRow, new: CellRow) -> Iterator[tuple[int, int]]:
    """Stretches of a row to write, from a column to before another."""
    if old.cells == new.cells and old.codes == new.codes:
        return
    width = len(new.cells)
    changed = [*compress(range(width), map(ne, old.cells, new.cells))]
    if old.codes != new.codes:
        changed = sorted({*changed, *compress(range(width), map(ne, old.codes, new.codes))})
    odd = min(old.first_odd(), new.first_odd())
    if changed[-1] >= odd:
        yield min(changed[0], odd), width
        return
    start = end = changed[0]
    for column in changed[1:]:
        gap = column - end
        if gap > _GAP or (gap > 1 and _changes_style(new.codes, end, column)):
            yield start, end + 1
            start = column
        end = column
    yield start, end + 1


def _changes_style(codes: list[str], before: int, behind: int) -> bool:
    """True when the unchanged cells between two changed ones have another style than the first of these."""
    first = codes[before]
    return any(code is not first and code != first for code in codes[before + 1 : behind])


def _blanks_from(x: int, end: int, row: CellRow) -> int:
    """Number of blanks of one style that begin at a column."""
    cells, code, stop = row.cells, row.codes[x], x
    while stop < end and cells[stop] == " " and row.codes[stop] == code:
        stop += 1
    return stop - x


def _same_from(x: int, end: int, row: CellRow) -> int:
    """End of the text of one style that begins at a column; a long stretch of blanks ends it too."""
    code, stop = row.codes[x], x + 1
    while (
        stop < end
        and row.codes[stop] == code
        and not (row.cells[stop] == " " and _blanks_from(stop, min(end, stop + _ERASED), row) == _ERASED)
    ):
        stop += 1
    return stop
