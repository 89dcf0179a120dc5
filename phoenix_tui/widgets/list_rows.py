"""One line of the list as pieces of text with their meanings: aligned columns, as many as the width has room for."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size

from phoenix_tui.text.labels import DONE, STOPPED, UNREAD
from phoenix_tui.widgets.roster import TITLE_LENGTH, RosterRow

PREFIX: Final = 3
"""Cells before the title: pointer, glyph, space."""
COLUMNS_FROM: Final = 50
"""Cells of width from which state, cost and the like have their own columns; the context level replaces a state without
information until there is room for both.
"""
LONGEST_BRIEF: Final = 6
"""Cells that a state may take from a title that needs them."""
CLOCK: Final = re.compile(r"\d+[smhd]")
SAYS_ALL: Final = frozenset({STOPPED, UNREAD, DONE})
"""Signs that make their word unnecessary, in states that need no answer."""
MOST_WIDER: Final = 26
"""Cells by which the folder may grow."""
LEAST_BESIDE: Final = 12
"""Cells of a title beside which the progress of a todo list has a place."""
LEAST_TITLE: Final = 24
"""Cells of a title that no column takes away."""


class Ink(StrEnum):
    """Meaning of a piece of a line."""

    TEXT = "text"
    TITLE = "title"
    QUIET = "quiet"
    TONE = "tone"
    """The colour of the row's state."""
    WARNING = "warning"
    YOU = "you"


class ListColumn(Struct, frozen=True):
    """A column: the field of a row it shows, its cells, how it is set and in which order it comes in."""

    field: str
    cells: int
    rank: int
    """0 comes in first."""
    right: bool = False


COLUMNS: Final = (
    ListColumn("state", 13, 1),
    ListColumn("folder", 14, 3),
    ListColumn("model", 17, 5),
    ListColumn("context", 4, 4, right=True),
    ListColumn("cost", 7, 2, right=True),
    ListColumn("when", 3, 0, right=True),
)
"""Columns from left to right."""
Piece = tuple[str, Ink]


class Signs(Struct, frozen=True):
    """Signs of a row in the list."""

    pointer: str
    pointer_ink: Ink
    glyph: str


def pieces(row: RosterRow, signs: Signs, width: int) -> list[Piece]:
    """The line, exactly `width` cells where that is more than a few."""
    start = [(signs.pointer, signs.pointer_ink), (f"{signs.glyph} ", Ink.TONE)]
    tail = _columns(row, width) if width >= COLUMNS_FROM else _words(row, width)
    room = max(_room(tail, width), 1)
    most = TITLE_LENGTH if width >= COLUMNS_FROM else room
    rest = max(room - most, 0)
    while len(tail) > 1 and tail[0][0].isspace() and cell_len(row.title) > room - rest:
        del tail[0]  # a long title extends over columns without values
        room = _room(tail, width)
    progress = f" {row.progress}" if row.progress and room - rest >= LEAST_BESIDE + len(row.progress) else ""
    cells = room - rest - len(progress)
    title = shorten(shorten(row.title, min(cells, most)), cells)
    beside = [(progress, Ink.QUIET)] if progress else []
    return [*start, (title, Ink.TITLE), *beside, *tail, (" " * rest, Ink.TEXT)]


def _room(tail: list[Piece], width: int) -> int:
    return width - PREFIX - sum(cell_len(text) for text, _ in tail)


@lru_cache(maxsize=8)
def shown_columns(width: int) -> tuple[ListColumn, ...]:
    """Choose as many columns as leave the title its least; unused room of the title goes to the folder."""
    room = width - PREFIX - LEAST_TITLE - 1
    taken: list[ListColumn] = []
    for column in sorted(COLUMNS, key=lambda each: each.rank):
        if column.cells + 1 > room:
            break
        taken.append(column)
        room -= column.cells + 1
    wider = max(min(room + LEAST_TITLE - TITLE_LENGTH, MOST_WIDER), 0)
    return tuple(
        replace(column, cells=column.cells + wider) if column.field == "folder" else column
        for column in COLUMNS
        if column in taken
    )


def _columns(row: RosterRow, width: int) -> list[Piece]:
    made: list[Piece] = []
    columns = shown_columns(width)
    apart = any(column.field == "context" for column in columns)
    for column in columns:
        words = row.label.text or ("" if apart else row.context)
        text = words if column.field == "state" else str(getattr(row, column.field))
        cut = tail_of(text, column.cells) if column.field == "folder" else shorten(text, column.cells)
        padded = " " * (column.cells - cell_len(cut.rstrip())) + cut.rstrip() if column.right else cut
        made.append((f" {padded}", _ink(column.field, row)))
    return [*made, (" ", Ink.TEXT)]


def _ink(field: str, row: RosterRow) -> Ink:
    if field == "state" and row.label.text:
        return Ink.TONE
    field = "context" if field == "state" else field
    return Ink.WARNING if field == "context" and row.near_full else Ink.QUIET


def _words(row: RosterRow, width: int) -> list[Piece]:
    brief = _brief(row)
    ways = [f"{words} {row.when}".strip() for words in (row.label.text or row.context, brief)]
    fitting = (one for one in ways if PREFIX + cell_len(f"{row.title} {one} ") <= width)
    right = next(fitting, brief or row.when)
    ink = Ink.WARNING if row.near_full else Ink.TONE if row.label.text else Ink.QUIET
    return [(f" {right} ", ink)]


def _brief(row: RosterRow) -> str:
    """Short form of a state where the title needs the room: one word that the sign before it does not say."""
    if not row.label.text:
        return row.context if row.near_full else ""
    first, *more = row.label.text.split()
    word = more[-1] if more and CLOCK.fullmatch(more[-1]) else first
    return "" if row.label.glyph in SAYS_ALL or len(word) > LONGEST_BRIEF else word


def shorten(text: str, cells: int) -> str:
    """Fit the text into exactly `cells`, cut with an ellipsis; a wide character is never halved."""
    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    return f"{set_cell_size(text, cells - 1)}…" if cells > 0 else ""


def tail_of(path: str, cells: int) -> str:
    """Fit a folder into exactly `cells`, cut at its beginning."""
    if cell_len(path) <= cells:
        return set_cell_size(path, cells)
    kept = path
    while kept and cell_len(kept) > cells - 1:
        kept = kept[1:]
    _, slash, below = kept.partition("/")
    return set_cell_size(f"…/{below}", cells) if slash and below else shorten(path.rpartition("/")[2], cells)
