"""Rows of a diff as lines of one width: one below the other, or removed beside added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby, zip_longest
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from phoenix_tui.markdown.lines import (
    MARGIN,
    PLAIN,
    QUIET,
    TEXT_COLUMN,
    Span,
    StyledLine,
    Surface,
    TextStyle,
    TextTone,
    altered,
    spans_width,
)
from phoenix_tui.markdown.wrap import wrap
from phoenix_tui.widgets.blocks.diff_rows import GAP, DiffPiece, DiffRow, MarkedRow, marked_runs
from phoenix_tui.widgets.blocks.rows import column

SPLIT_FROM: Final = 138
"""Columns from which before and after are side by side: a pane of 140 without its margin at the right."""
_LOOKS: Final = {"+": TextStyle(TextTone.GOOD, Surface.ADDED), "-": TextStyle(TextTone.BAD, Surface.REMOVED)}
_CHANGED: Final = {"+": Surface.ADDED_WORDS, "-": Surface.REMOVED_WORDS}
_INDENT: Final = Span(" " * MARGIN)
_BETWEEN: Final = Span(" │ ", QUIET)
Coloured: TypeAlias = Sequence[Span]
"""One source line in syntax colours; empty for a plain one."""


class DiffPair(NamedTuple):
    """Content of one place: one row of the diff, or side by side the old and the new row."""

    left: MarkedRow | None
    right: MarkedRow | None = None


class DiffLayout(Struct, frozen=True):
    """Layout of the rows of one diff."""

    digits: int
    """Cells of a line number."""
    room: int
    """Cells of a line's text."""
    is_open: bool
    """True to wrap long lines; else they are cut."""
    is_split: bool

    @classmethod
    def fitting(cls, rows: Sequence[DiffRow], width: int, *, is_open: bool) -> DiffLayout:
        """The layout of these rows on a screen of `width`; a file all new or all gone is never split."""
        digits = len(str(max((max(row.number, row.before) for row in rows), default=1)))
        if width >= SPLIT_FROM and len({row.sign for row in rows if row.sign != GAP}) > 1:
            half = min((width - MARGIN - spans_width((_BETWEEN,))) // 2, TEXT_COLUMN + digits)
            return cls(digits, half - digits - 3, is_open, True)
        return cls(digits, max(column(width) - MARGIN - digits - 3, 1), is_open, False)

    def pairs(self, rows: Sequence[DiffRow]) -> Iterator[DiffPair]:
        """The rows in their order on the screen, top down."""
        for old, new in marked_runs(rows):
            if not self.is_split or (old and old[0].row.sign == GAP):
                yield from (DiffPair(marked) for marked in chain(old, new))
                continue
            same = bool(old) and old[0].row.sign == " "
            yield from (DiffPair(left, right) for left, right in zip_longest(old, old if same else new))

    def lines(self, pair: DiffPair, left: Coloured = (), right: Coloured = ()) -> Iterator[StyledLine]:
        """The lines of one pair; whether in colours or plain, they are as many and say the same."""
        if pair.left is not None and pair.left.row.sign == GAP:
            yield StyledLine((_INDENT, Span(f"{' ' * self.digits} {GAP}", QUIET)))
        elif self.is_split:
            yield from self._beside(pair, left, right)
        elif pair.left is not None:
            margin = MARGIN + self.digits + 3
            for spans, joint in self._cells(pair.left, pair.left.row.number, left):
                yield StyledLine((_INDENT, *spans), joint, margin)

    def _beside(self, pair: DiffPair, left: Coloured, right: Coloured) -> Iterator[StyledLine]:
        """One line before and the one that took its place; either may be missing."""
        blank = ((Span(" " * (self.digits + 3 + self.room)),), None)
        before, after = pair
        befores = iter(()) if before is None else self._cells(before, before.row.before or before.row.number, left)
        afters = iter(()) if after is None else self._cells(after, after.row.number, right)
        for (old, joint), (new, other) in zip_longest(befores, afters, fillvalue=blank):
            first = len(_INDENT.text) + self.digits + 3
            middle = len(_INDENT.text) + sum(len(span.text) for span in old)
            second = middle + len(_BETWEEN.text) + self.digits + 3
            end = middle + len(_BETWEEN.text) + sum(len(span.text) for span in new)
            sides = ((first, middle), (second, end))
            yield StyledLine((_INDENT, *old, _BETWEEN, *new), joint if joint is not None else other, MARGIN, sides)

    def _cells(
        self, marked: MarkedRow, number: int, coloured: Coloured
    ) -> Iterator[tuple[tuple[Span, ...], str | None]]:
        """Number, sign and text of one line, filled to its width; more rows where it is open and longer."""
        sign, digits = marked.row.sign, self.digits
        look = _LOOKS.get(sign, PLAIN)
        spans = _spans(marked, look._replace(tone=TextTone.TEXT), coloured)
        rows = wrap(spans, self.room, hard=True)
        if not self.is_open and len(rows) > 1:
            rows = [_cut(spans, self.room)]
        for place, (row, joint) in enumerate(rows):
            lead = f"{number:>{digits}} " if place == 0 else " " * (digits + 1)
            fill = Span(" " * max(self.room - spans_width(row), 0), look)
            mark = Span(f"{sign if place == 0 else ' '} ", look)
            yield (Span(lead, look._replace(tone=TextTone.QUIET)), mark, *row, fill), joint


def _spans(marked: MarkedRow, plain: TextStyle, coloured: Coloured) -> tuple[Span, ...]:
    """The text of a row: colours show its syntax, backgrounds its change."""
    strong = altered(plain, surface=_CHANGED.get(marked.row.sign, plain.surface), bold=True)
    if "".join(span.text for span in coloured) != "".join(piece.text for piece in marked.pieces):
        return tuple(Span(piece.text, strong if piece.changed else plain) for piece in marked.pieces)
    pieces = (
        (_on(span.look, strong if changed else plain, changed=changed), text)
        for text, span, changed in _both(marked.pieces, coloured)
    )
    return tuple(Span("".join(text for _, text in same), look) for look, same in groupby(pieces, itemgetter(0)))


def _both(pieces: Sequence[DiffPiece], coloured: Coloured) -> Iterator[tuple[str, Span, bool]]:
    """The same text cut wherever either is cut."""
    spans = iter(coloured)
    span, at = Span(""), 0
    for piece in pieces:
        rest = piece.text
        while rest:
            if at == len(span.text):
                span, at = next(spans), 0
                continue
            taken = span.text[at : at + len(rest)]
            yield taken, span, piece.changed
            at, rest = at + len(taken), rest[len(taken) :]


def _on(code: TextStyle, look: TextStyle, *, changed: bool) -> TextStyle:
    """A colour of code on the background of the diff; a quiet one could not be read on a mark."""
    tone = TextTone.TEXT if changed and code.tone is TextTone.QUIET else code.tone
    return altered(look, tone=tone, bold=code.bold, italic=code.italic)


def _cut(spans: Sequence[Span], room: int) -> tuple[tuple[Span, ...], None]:
    first, _ = wrap(spans, max(room - 1, 1), hard=True)[0]
    return (*first, Span("…", QUIET._replace(surface=spans[0].look.surface))), None
