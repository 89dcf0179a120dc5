"""Rows of the screen as cells, and the shortest sequence from one style to the next (ECMA-48 8.3.117, SGR)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from rich.cells import split_graphemes
from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

from phoenix_tui.terminal.output import MARKS, PLACEHOLDER, link_to, safe_link

KEPT: Final = 4096
"""Styles, and pairs of them, whose sequences are kept."""
_COLOUR: Final = frozenset(map(str, (*range(30, 38), *range(90, 98), 38, 39)))
_GROUND: Final = frozenset(map(str, (*range(40, 48), *range(100, 108), 48, 49)))
_LONG: Final = {"5": 3, "2": 5}
"""Parameters of a colour by the one behind 38 or 48."""
_OFF: Final = {
    "1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29", "21": "24",
}  # fmt: skip
_SEEN_ON_BLANKS: Final = frozenset({"4", "7", "9", "21", "51", "52", "53"})
"""Attributes that show where nothing is written: lines, frames, exchanged colours."""


class CellStyle(NamedTuple):
    """A style taken apart."""

    attributes: tuple[str, ...]
    colour: str
    """Empty for the terminal's own, as `ground`."""
    ground: str

    @property
    def code(self) -> str:
        return ";".join(filter(None, (*self.attributes, self.colour, self.ground)))


LINK: Final = "\n"
"""Between the SGR parameters of a code and the address of its link."""


@lru_cache(KEPT)
def code_of(style: Style | None, colours: ColorSystem) -> str:
    """The SGR parameters of a style, always the same text for the same look, and the address of a safe link."""
    if style is None:
        return ""
    code = look_of(style._make_ansi_codes(colours)).code  # noqa: SLF001 - render() adds the link
    address = safe_link(style.link) if style.link else ""
    return f"{code}{LINK}{address}" if address else code


def link_of(code: str) -> str:
    """The address of the link of a code; empty without one."""
    return code.partition(LINK)[2]


@lru_cache(KEPT)
def look_of(code: str) -> CellStyle:
    attributes, colour, ground = list[str](), "", ""
    for each in _parameters(code.partition(LINK)[0]):
        kind = each.partition(";")[0]
        if kind in _COLOUR:
            colour = "" if kind == "39" else each
        elif kind in _GROUND:
            ground = "" if kind == "49" else each
        else:
            attributes.append(each)
    return CellStyle(tuple(attributes), colour, ground)


def _parameters(code: str) -> Iterator[str]:
    """Single parameters; a colour of several is one."""
    parts = code.split(";") if code else []
    place = 0
    while place < len(parts):
        length = _LONG.get(parts[place + 1], 1) if parts[place] in {"38", "48"} and place + 1 < len(parts) else 1
        yield ";".join(parts[place : place + length])
        place += length


@lru_cache(KEPT)
def blank_code(code: str) -> str:
    """The style of a blank that looks the same: its background alone, unless a line goes through it."""
    look = look_of(code)
    return code if _SEEN_ON_BLANKS.intersection(look.attributes) else look.ground


@lru_cache(KEPT)
def is_erasable(code: str) -> bool:
    """True when erasing in this style leaves the same blanks as writing them."""
    return not link_of(code) and not _SEEN_ON_BLANKS.intersection(look_of(code).attributes)


@lru_cache(KEPT)
def change_of_style(before: str, after: str) -> str:
    """The shortest sequence from one style to another; empty where they are the same."""
    old, new = link_of(before), link_of(after)
    link = link_to(new) if old != new else ""
    return link + _change_of_look(before.partition(LINK)[0], after.partition(LINK)[0])


def _change_of_look(before: str, after: str) -> str:
    if before == after:
        return ""
    if not after:
        return "\x1b[m"
    step = _step(look_of(before), look_of(after))
    afresh = f"0;{after}"
    return f"\x1b[{step if step is not None and len(step) <= len(afresh) else afresh}m"


def _step(old: CellStyle, new: CellStyle) -> str | None:
    """The parameters that change the differences; None where one that stays would be switched off too."""
    gone = [each for each in old.attributes if each not in new.attributes]
    off = {_OFF.get(each, "") for each in gone}
    if "" in off or any(_OFF.get(each) in off for each in new.attributes):
        return None
    added = [each for each in new.attributes if each not in old.attributes]
    colour = [new.colour or "39"] if new.colour != old.colour else []
    ground = [new.ground or "49"] if new.ground != old.ground else []
    return ";".join([*sorted(off), *added, *colour, *ground])


UNKNOWN: Final = "\0"
"""Marks a cell whose content on the terminal is unknown; no text is ever equal to it."""
_SECOND: Final = ""
"""The second cell of a character two cells wide."""
_CONTROL_CHARACTERS: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
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


class CellLine:
    """One row of cells; `cells` and `codes` are as long as the screen is wide."""

    __slots__ = ("cells", "codes")

    def __init__(self, cells: list[str], codes: list[str]) -> None:
        self.cells = cells
        """The text of each cell with the marks that belong to it; empty behind a wide character."""
        self.codes = codes
        """SGR parameters of each cell (`sgr.py`)."""

    @classmethod
    def of(cls, cell: str, columns: int) -> CellLine:
        return cls([cell] * columns, [""] * columns)

    def copy(self) -> CellLine:
        return CellLine(self.cells.copy(), self.codes.copy())

    def holds(self, column: int, piece: CellLine) -> bool:
        end = column + len(piece.cells)
        return self.cells[column:end] == piece.cells and self.codes[column:end] == piece.codes

    def put(self, column: int, piece: CellLine) -> None:
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


def hold_image(rows: Iterable[CellLine]) -> bool:
    """True when the driver draws an image over cells of any of these rows."""
    return MARKS.search("".join(["".join(row.cells) for row in rows])) is not None


class StripPieces:
    """Strips as pieces of rows; Textual draws most of them again and again."""

    def __init__(self, *, links: bool = False) -> None:
        self._links = links
        """True where links are drawn as such."""
        self._kept: dict[int, tuple[Strip, ColorSystem, CellLine]] = {}

    def piece(self, strip: Strip, colours: ColorSystem) -> CellLine:
        kept = self._kept.get(id(strip))  # referenced here, so that no other strip gets its id
        if kept is not None and kept[0] is strip and kept[1] is colours:
            return kept[2]
        cells, codes = list[str](), list[str]()
        for text, style, control in strip:
            if not text or control:
                continue
            found = cells_of(text)
            code = code_of(style, colours)
            code = code if self._links else code.partition(LINK)[0]
            cells += found
            codes += [blank_code(code) if text.isspace() else code] * len(found)
        piece = CellLine(cells, codes)
        if len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[id(strip)] = strip, colours, piece
        return piece


def cells_of(text: str) -> list[str]:
    """The text of each cell, widths as Rich counts them; a control character takes none and is left out."""
    if _SINGLE.issuperset(text):
        return list(text)
    text = _CONTROL_CHARACTERS.sub("", text)
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
