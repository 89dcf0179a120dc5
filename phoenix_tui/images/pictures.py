"""Decoded images as the cells of one row: half blocks, kitty's placeholders, or the mark of a sixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from phoenix_tui.terminal.output import PLACEHOLDER

_HALF: Final = "▀"
_RGBA: Final = 4
MARKS: Final = "".join(
    map(
        chr,
        (
            *(0x305, 0x30D, 0x30E, 0x310, 0x312, 0x33D, 0x33E, 0x33F, 0x346, 0x34A, 0x34B, 0x34C, 0x350, 0x351, 0x352),
            *(0x357, 0x35B, *range(0x363, 0x370), *range(0x483, 0x488), *range(0x592, 0x596), 0x597, 0x598, 0x599),
            *(*range(0x59C, 0x5A2), 0x5A8, 0x5A9, 0x5AB, 0x5AC, 0x5AF, 0x5C4, *range(0x610, 0x618)),
            *(*range(0x657, 0x65C), 0x65D, 0x65E, *range(0x6D6, 0x6DD), *range(0x6DF, 0x6E3), 0x6E4, 0x6E7, 0x6E8),
            *(0x6EB, 0x6EC, 0x730, 0x732, 0x733, 0x735, 0x736, 0x73A, 0x73D, 0x73F, 0x740, 0x741, 0x743, 0x745),
            *(0x747, 0x749, 0x74A, 0x7EB, 0x7EC, 0x7ED, 0x7EE, 0x7EF, 0x7F0, 0x7F1, 0x7F3),
        ),
    )
)
"""Diacritics; the n-th means row or column n (kitty's rowcolumn-diacritics.txt, its beginning)."""


class Picture(Protocol):
    """An image of some rows."""

    def cells(self, row: int, background: Color) -> Sequence[Segment]:
        """The cells of one row."""
        ...


class BlocksPicture(Struct, frozen=True):
    """Two pixels a cell, one above the other."""

    columns: int
    pixels: bytes
    """RGBA, `columns` wide."""

    def cells(self, row: int, background: Color) -> Sequence[Segment]:
        """The cells of one row; equal neighbours share a segment."""
        wide = self.columns * _RGBA
        upper = self.pixels[2 * row * wide : (2 * row + 1) * wide]
        lower = self.pixels[(2 * row + 1) * wide : (2 * row + 2) * wide]
        made: list[Segment] = []
        start = 0
        for place in range(_RGBA, wide + 1, _RGBA):
            same = place < wide and _same(upper, start, place) and _same(lower, start, place)
            if not same:
                made.append(_halves(_at(upper, start, background), _at(lower, start, background), place - start))
                start = place
        return made


def _same(pixels: bytes, one: int, other: int) -> bool:
    return pixels[one : one + _RGBA] == pixels[other : other + _RGBA]


def _at(pixels: bytes, place: int, background: Color) -> tuple[int, int, int]:
    """A pixel as it looks on the background."""
    red, green, blue, alpha = pixels[place : place + _RGBA]
    if alpha == 255:
        return red, green, blue
    share = alpha / 255
    return (
        round(red * share + background.r * (1 - share)),
        round(green * share + background.g * (1 - share)),
        round(blue * share + background.b * (1 - share)),
    )


def _halves(upper: tuple[int, int, int], lower: tuple[int, int, int], bytes_wide: int) -> Segment:
    count = bytes_wide // _RGBA
    ground = RichColor.from_rgb(*lower)
    if upper == lower:
        return Segment(" " * count, Style(bgcolor=ground))
    return Segment(_HALF * count, Style(color=RichColor.from_rgb(*upper), bgcolor=ground))


class KittyPicture(Struct, frozen=True):
    """An image the terminal holds; its cells are text, so they scroll, are cut and repainted like text."""

    number: int
    """Image id of up to 24 bits: the colour of its cells."""
    columns: int

    def cells(self, row: int, background: Color) -> Sequence[Segment]:
        """The cells of one row."""
        text = "".join(f"{PLACEHOLDER}{MARKS[row]}{MARKS[column]}" for column in range(self.columns))
        colour = RichColor.from_rgb(self.number >> 16, self.number >> 8 & 255, self.number & 255)
        return [Segment(text, Style(color=colour, bgcolor=background.rich_color))]


class SixelPicture(Struct, frozen=True):
    """Blank cells; behind the last one of each row the driver draws that row's sixels over them."""

    columns: int
    marks: tuple[str, ...]
    """Characters that the driver replaces, one for each row."""

    def cells(self, row: int, background: Color) -> Sequence[Segment]:
        """The cells of one row."""
        style = Style(bgcolor=background.rich_color)
        return [Segment(" " * (self.columns - 1), style), Segment(self.marks[row], style)]
