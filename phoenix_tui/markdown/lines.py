"""The words of everything that is drawn in a transcript: looks, spans and lines, free of any theme."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len


class TextTone(IntEnum):
    """Meaning of a foreground (docs/decisions/looks.md); a theme gives each a colour."""

    TEXT = 0
    QUIET = 1
    YOU = 2
    WORK = 3
    NEEDS_YOU = 4
    GOOD = 5
    BAD = 6
    KEYWORD = 7
    STRING = 8
    NUMBER = 9
    NAME = 10


class Surface(IntEnum):
    """Meaning of a background."""

    PLAIN = 0
    CODE = 1
    ADDED = 2
    REMOVED = 3
    ADDED_WORDS = 4
    REMOVED_WORDS = 5


class TextStyle(NamedTuple):
    """Style of a piece of text, in meanings."""

    tone: TextTone = TextTone.TEXT
    surface: Surface = Surface.PLAIN
    bold: bool = False
    italic: bool = False
    strike: bool = False
    underline: bool = False
    program: str = ""
    """SGR parameters of a piece of a program's output, on top of the rest."""


PLAIN = TextStyle()
QUIET = TextStyle(TextTone.QUIET)
CODE = TextStyle(surface=Surface.CODE)


@lru_cache(maxsize=1024)
def altered(
    look: TextStyle,
    *,
    tone: TextTone | None = None,
    surface: Surface | None = None,
    bold: bool = False,
    italic: bool = False,
    strike: bool = False,
    underline: bool = False,
) -> TextStyle:
    """`look` with more on top; None and False leave a trait as it is."""
    return TextStyle(
        look.tone if tone is None else tone,
        look.surface if surface is None else surface,
        look.bold or bold,
        look.italic or italic,
        look.strike or strike,
        look.underline or underline,
        look.program,
    )


class Span(NamedTuple):
    """Text in one look; `action` is that of a click on it, empty for none."""

    text: str
    look: TextStyle = PLAIN
    action: str = ""


TEXT_COLUMN = 100
"""Cells of text at most, however wide the screen (docs/decisions/looks.md)."""
MARGIN = 2
"""Cells left of every text: the column of bars and one blank."""


class StyledLine(NamedTuple):
    """One row of the screen, not padded."""

    spans: tuple[Span, ...]
    joint: str | None = None
    """Text that copying puts between the row above and this one: None is a newline, else the row continues it."""
    margin: int = MARGIN
    """Cells at the left that are decoration and are not copied."""
    sides: tuple[tuple[int, int], ...] = ()
    """Spans of two texts next to each other: the characters of each; copying takes one of them."""

    @property
    def text(self) -> str:
        """Text of the row."""
        return "".join(span.text for span in self.spans)


BLANK = StyledLine(())


def cells(text: str) -> int:
    """The columns `text` takes."""
    return len(text) if text.isascii() else cell_len(text)


def spans_width(spans: Iterable[Span]) -> int:
    """The columns all of `spans` take."""
    return sum(cells(span.text) for span in spans)
