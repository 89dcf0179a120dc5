"""Rows of the screen as cells: a text and a style for each column."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from rich.cells import split_graphemes
from rich.color import ColorSystem
from rich.segment import Segment
from textual.strip import Strip

from phoenix_tui.terminal.output import MARKS, PLACEHOLDER
from phoenix_tui.terminal.sgr import blank_code, code_of

UNKNOWN: Final = "\0"
"""Marks a cell whose content on the terminal is unknown; no text is ever equal to it."""
_SECOND: Final = ""
"""The second cell of a character two cells wide."""
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_SINGLE: Final = frozenset(
    chr(point)
    for first, last in (
        (0x20, 0x7E),
        (0xA0, 0xAC),
        (0xAE, 0x2FF),
        (0x370, 0x482),
        (0x2010, 0x2027),
        (0x2030, 0x205E),
        (0x2190, 0x22FF),
        (0x2500, 0x25FC),
        (0x2713, 0x2718),
        (0x2800, 0x28FF),
    )
    for point in range(first, last + 1)
)
"""Characters that take one cell everywhere, unless a selector follows; most texts hold no others."""
_WIDE: Final = (
    ("\u3000", "\u303e"),
    ("\u3041", "\u30ff"),
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\uac00", "\ud7a3"),
    ("\uf900", "\ufaff"),
    ("\uff01", "\uff60"),
)
"""First and last of characters that take two cells everywhere: Chinese, Japanese and Korean scripts."""
_DISPUTED: Final = ("\ue000", "\uf8ff"), ("\U0001f000", "\U0010fffd")
"""Symbols and private characters, whose width terminals disagree on."""
_KEPT: Final = 256
"""Strips whose cells are kept: those of a large screen."""


class CellRow:
    """One row of cells; `cells` and `codes` are as long as the screen is wide."""

    __slots__ = ("cells", "codes")

    def __init__(self, cells: list[str], codes: list[str]) -> None:
        self.cells = cells
        """The text of each cell with the marks that belong to it; empty behind a wide character."""
        self.codes = codes
        """SGR parameters of each cell (`sgr.py`)."""

    @classmethod
    def of(cls, cell: str, columns: int) -> CellRow:
        """A row of equal cells without a style."""
        return cls([cell] * columns, [""] * columns)

    def copy(self) -> CellRow:
        """A row of its own with the same cells."""
        return CellRow(self.cells.copy(), self.codes.copy())

    def holds(self, column: int, piece: CellRow) -> bool:
        """True when a piece is at a column already."""
        end = column + len(piece.cells)
        return self.cells[column:end] == piece.cells and self.codes[column:end] == piece.codes

    def put(self, column: int, piece: CellRow) -> None:
        """Write a piece from a column on; the part beyond the row's end is cut off."""
        end = min(column + len(piece.cells), len(self.cells))
        if column < 0 or end <= column:
            return
        self.cells[column:end], self.codes[column:end] = piece.cells[: end - column], piece.codes[: end - column]
        self._close(column)
        self._close(end)

    def _close(self, column: int) -> None:
        """Blank the half of a wide character that was cut at a column: the terminal does so too."""
        cells = self.cells
        if column < len(cells) and cells[column] == _SECOND and (column == 0 or not _is_wide(cells[column - 1])):
            cells[column] = " "
        if column > 0 and _is_wide(cells[column - 1]) and (column == len(cells) or cells[column] != _SECOND):
            cells[column - 1] = " "

    def odd_columns(self) -> list[int]:
        """The columns whose character some terminals draw in another width."""
        if _SINGLE.issuperset("".join(self.cells)):
            return []
        return [column for column, cell in enumerate(self.cells) if cell > "~" and _is_odd(cell)]

    def first_odd(self) -> int:
        """The column from which on the row is written as a whole; its length where no character is odd.

        An image covers the cells before its mark: such a row is always written from its beginning.
        """
        odd = self.odd_columns()
        if any(MARKS.match(self.cells[column]) for column in odd):
            return 0
        return odd[0] if odd else len(self.cells)


def hold_image(rows: Iterable[CellRow]) -> bool:
    """True when the driver draws an image over cells of any of these rows."""
    return MARKS.search("".join(["".join(row.cells) for row in rows])) is not None


class StripPieces:
    """Strips as pieces of rows; Textual draws most of them again and again."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Strip, ColorSystem, CellRow]] = {}

    def piece(self, strip: Strip, colours: ColorSystem) -> CellRow:
        """The cells of a strip; not to be changed."""
        kept = self._kept.get(id(strip))  # referenced here, so that no other strip gets its id
        if kept is not None and kept[0] is strip and kept[1] is colours:
            return kept[2]
        piece = _piece_of(strip, colours)
        if len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[id(strip)] = strip, colours, piece
        return piece


def _piece_of(segments: Iterable[Segment], colours: ColorSystem) -> CellRow:
    cells, codes = list[str](), list[str]()
    for text, style, control in segments:
        if not text or control:
            continue
        found = cells_of(text)
        code = code_of(style, colours)
        cells += found
        codes += [blank_code(code) if text.isspace() else code] * len(found)
    return CellRow(cells, codes)


def cells_of(text: str) -> list[str]:
    """The text of each cell, widths as Rich counts them; a control character takes none and is left out."""
    if _SINGLE.issuperset(text):
        return list(text)
    text = _CONTROLS.sub("", text)
    cells: list[str] = []
    for start, end, width in split_graphemes(text)[0]:
        if width:
            cells.append(text[start:end])
            cells += [_SECOND] * (width - 1)
        elif cells:
            last = -1 if cells[-1] != _SECOND else -2
            cells[last] += text[start:end]
    return cells


@lru_cache(4096)
def _is_wide(cell: str) -> bool:
    return cell > "~" and len(cells_of(cell)) > 1


@lru_cache(4096)
def _is_odd(cell: str) -> bool:
    if cell in _SINGLE or cell.startswith(PLACEHOLDER):
        return False
    if len(cell) > 1 or _is_among(_DISPUTED, cell):
        return True
    return _is_wide(cell) and not _is_among(_WIDE, cell)


def _is_among(ranges: Iterable[tuple[str, str]], cell: str) -> bool:
    return any(first <= cell <= last for first, last in ranges)
