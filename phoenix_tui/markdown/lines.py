"""Lines of a transcript: looks and spans, free of any theme, and text broken or cut to cells."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from rich.cells import cell_len, split_graphemes


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
def alter_look(
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
        return "".join(span.text for span in self.spans)


BLANK = StyledLine(())


def cells(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def spans_width(spans: Iterable[Span]) -> int:
    return sum(cells(span.text) for span in spans)


BEFORE: Final = "?&#"
BEHIND: Final = "/"
"""Characters at which a word without blanks, such as an address or a path, is broken if it must be."""
LEAST_SHARE: Final = 3
"""Share of a row, as a divisor, that such a break must fill."""
LOOKED_AT: Final = 4_000
"""Characters of a text of which one row is made: more are marks that take no room."""


class WrappedRow(NamedTuple):
    """One row of a broken text: its characters, and how it hangs on the row above."""

    start: int
    end: int
    joint: str | None


def wrap(spans: Sequence[Span], width: int, *, hard: bool = False) -> list[tuple[tuple[Span, ...], str | None]]:
    """Break one line of spans into rows of at most `width` cells; `hard` keeps every blank, for code."""
    text = "".join(span.text for span in spans)
    if len(text) <= width and text.isascii():
        return [(tuple(spans), None)]
    rows = breaks(text, max(width, 1), hard=hard)
    if len(rows) == 1:
        return [(tuple(spans), None)]
    starts = list(accumulate((len(span.text) for span in spans), initial=0))
    return [(_cut(spans, starts, row.start, row.end), row.joint) for row in rows]


def breaks(text: str, width: int, *, hard: bool = False) -> list[WrappedRow]:
    if text.isascii():
        return _ascii_breaks(text, width, hard)
    graphemes, total = split_graphemes(text)
    if total <= width:
        return [WrappedRow(0, len(text), None)]
    return _grapheme_breaks(text, graphemes, width, hard)


def _ascii_breaks(text: str, width: int, hard: bool) -> list[WrappedRow]:
    rows: list[WrappedRow] = []
    position, joint = 0, None
    while len(text) - position > width:
        blank = -1 if hard else text.rfind(" ", position, position + width + 1)
        if blank <= position or text[position:blank].isspace():
            end = following = position + width if hard else _within_word(text, position, position + width)
            next_joint = ""
        else:
            end, following, next_joint = _around_blanks(text, position, blank)
        rows.append(WrappedRow(position, end, joint))
        position, joint = following, next_joint
    if position < len(text) or not rows:
        rows.append(WrappedRow(position, len(text), joint))
    return rows


def _within_word(text: str, start: int, end: int) -> int:
    """Place of a break in a word that is longer than its row: between parts of an address, else the end of the row."""
    least = start + (end - start) // LEAST_SHARE
    behind = text.rfind(BEHIND, least, end)
    found = max(behind + 1, *(text.rfind(sign, least + 1, end + 1) for sign in BEFORE))
    return found if found > least else end


def _around_blanks(text: str, start: int, blank: int) -> tuple[int, int, str]:
    """The end of a row broken at `blank`, the start of the next, and the text that the break removed."""
    end = blank
    while end > start and text[end - 1] == " ":
        end -= 1
    following = blank
    while following < len(text) and text[following] == " ":
        following += 1
    return end, following, " "


def _grapheme_breaks(text: str, graphemes: Sequence[tuple[int, int, int]], width: int, hard: bool) -> list[WrappedRow]:
    rows: list[WrappedRow] = []
    start, used, joint, part = 0, 0, None, 0
    breakable: tuple[int, int, str] | None = None
    for begin, _, size in graphemes:
        if begin < start:
            continue
        if not hard and text[begin] == " " and text[start:begin].strip():
            breakable = _around_blanks(text, start, begin)
        elif not hard and size > 1 and begin > start and (breakable is None or breakable[1] < begin):
            breakable = (begin, begin, "")
        if not hard and begin > start and (text[begin] in BEFORE or text[begin - 1] == BEHIND):
            part = begin
        if used + size > width and begin > start:
            inside = part if part > start + (begin - start) // LEAST_SHARE else begin
            row_end, following, next_joint = breakable or (inside, inside, "")
            rows.append(WrappedRow(start, row_end, joint))
            joint, start, breakable = next_joint, following, None
            used = cells(text[start:begin]) if start < begin else 0
            if start > begin:
                continue
        used += size
    if start < len(text):
        rows.append(WrappedRow(start, len(text), joint))
    return rows


def _cut(spans: Sequence[Span], starts: Sequence[int], start: int, end: int) -> tuple[Span, ...]:
    """The characters `start` to `end` of the joined text, in their looks; `starts` has the start of each span."""
    cut: list[Span] = []
    for index in range(max(bisect_right(starts, start) - 1, 0), len(spans)):
        span, position = spans[index], starts[index]
        if position >= end:
            break
        piece = span.text[max(0, start - position) : end - position]
        if piece:
            cut.append(span if len(piece) == len(span.text) else span._replace(text=piece))
    return tuple(cut)


def ellipsize(text: str, width: int) -> str:
    """`text` in at most `width` cells, its end replaced by an ellipsis where it is longer."""
    looked_at = text[:LOOKED_AT]
    if len(text) <= LOOKED_AT and cells(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    return looked_at[: breaks(looked_at, width - 1, hard=True)[0].end] + "…"


CUT: Final = "…"


def cut_middle(text: str, cells: int) -> str:
    """The text within so many cells; the middle of a longer one goes, since names differ at their ends."""
    if len(text) > LOOKED_AT:
        text = f"{text[: LOOKED_AT // 2]}{CUT}{text[-LOOKED_AT // 2 :]}"
    if cell_len(text) <= cells:
        return text
    if cells < len(CUT) + 2:
        return CUT[: max(cells, 0)]
    tail = _within(text[::-1], (cells - 1) * 3 // 5)[::-1]
    return f"{_within(text, cells - 1 - cell_len(tail))}{CUT}{tail}"


def _within(text: str, cells: int) -> str:
    used = 0
    for place, letter in enumerate(text):
        used += cell_len(letter)
        if used > cells:
            return text[:place]
    return text
