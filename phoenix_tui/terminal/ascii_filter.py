"""Every screen in ASCII signs, for a terminal whose locale does not name UTF-8 (docs/decisions/looks.md)."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from phoenix_tui.text import labels
from phoenix_tui.text.labels import Glyph

_GLYPHS: Final = [glyph for glyph in vars(labels).values() if isinstance(glyph, Glyph)]
_GROUPS: Final = {
    "*": labels.TURNING + "•▪◦",
    "|": "│┃▌▏",
    "-": "─━—–−▱·",
    "+": "├└┌┐┘┤┬┴┼",
    ".": "…⋯",
    ">": "›→»",
    "<": "←«≤",
    "^": "↑▴",
    "v": "↓",
    "/": "↵",
    "#": "▰▀▄█▁▂▃▅▆▇",
    "x": "×",
    '"': "“”",
    "'": "‘’",
    "~": "≈",
}
PLAIN: Final = str.maketrans(
    {sign: plain for plain, signs in _GROUPS.items() for sign in signs} | {glyph.sign: glyph.plain for glyph in _GLYPHS}
)
"""ASCII signs, one cell wide, for signs of the same width, so that no row moves."""


class PlainSigns(LineFilter):
    """Puts ASCII signs into finished rows: no widget needs to know of it."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same row; sequences for the terminal stay as they are."""
        return [one if one.control else Segment(one.text.translate(PLAIN), one.style) for one in segments]
