"""Code and plain text of any size as rows: at once plain, then coloured slice by slice with the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from phoenix_tui.markdown.lines import (
    CODE,
    QUIET,
    Span,
    StyledLine,
    Surface,
    TextTone,
    alter_look,
    breaks,
    spans_width,
    wrap,
)
from tools.clean_pieces import PieceCleaner


class CodeBlock(Struct, frozen=True):
    """A piece of code as it was written, and the rows it takes among the lines around it."""

    first: int
    after: int
    text: str
    language: str


TAB = 4
_PAD = Span(" ", CODE)
_COMMENT = alter_look(QUIET, surface=Surface.CODE)
_TONES = {
    "Keyword": alter_look(CODE, tone=TextTone.KEYWORD),
    "Name": CODE,
    "Literal.String": alter_look(CODE, tone=TextTone.STRING),
    "Literal.Number": alter_look(CODE, tone=TextTone.NUMBER),
    "Comment": _COMMENT,
    "Name.Function": alter_look(CODE, tone=TextTone.NAME),
    "Name.Class": alter_look(CODE, tone=TextTone.NAME),
    "Name.Decorator": alter_look(CODE, tone=TextTone.NAME),
    "Name.Tag": alter_look(CODE, tone=TextTone.NAME),
    "Name.Builtin": alter_look(CODE, tone=TextTone.NAME),
    "Name.Namespace": alter_look(CODE, tone=TextTone.NAME),
    "Generic.Inserted": alter_look(CODE, tone=TextTone.GOOD),
    "Generic.Deleted": alter_look(CODE, tone=TextTone.BAD),
    "Generic.Heading": alter_look(CODE, bold=True),
    "Generic.Subheading": alter_look(CODE, bold=True),
}
_KINDS = tuple(_TONES)
_LOOKS = (*_TONES.values(), CODE)
"""Styles by the index of a kind; the last is for -1, a piece of no kind."""


def code_rows(spans: Sequence[Span], gutter: tuple[Span, ...], width: int) -> list[StyledLine]:
    """One source line of code as rows, tinted to the full `width` (cells right of `gutter`)."""
    margin = spans_width(gutter) + 1
    rows: list[StyledLine] = []
    for row, joint in wrap(spans, max(width - 2, 1), hard=True):
        blank = Span(" " * max(width - 1 - spans_width(row), 1), CODE)
        rows.append(StyledLine((*gutter, _PAD, *row, blank), joint, margin))
    return rows


def plain_code(line: str) -> tuple[Span, ...]:
    return (Span(line.expandtabs(TAB), CODE),) if line.strip() else ()


def colour_lines(code: str, language: str) -> Iterator[tuple[Span, ...]]:
    """The source lines of `code` in syntax colours, as far as they are known; blocks: call it from a thread.

    Lexers run in a process of their own, which says nothing but lengths.
    """
    from tools.lexing.client import lexing  # noqa: PLC0415 - with the first fence

    lines = code.expandtabs(TAB).split("\n")
    pieces = lexing.lines("\n".join(lines), language, _KINDS)
    return (_spans(line, known) for line, known in zip(lines, pieces, strict=False))


def _spans(line: str, pieces: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    place = 0
    for kind, length in pieces:
        look = _LOOKS[kind] if -1 <= kind < len(_TONES) else CODE
        if spans and spans[-1].look == look:
            spans[-1] = Span(spans[-1].text + line[place : place + length], look)
        else:
            spans.append(Span(line[place : place + length], look))
        place += length
    honest = place == len(line) and all(length > 0 for _, length in pieces)
    return tuple(spans) if honest else ((Span(line, CODE),) if line else ())


class CodeJob:
    """Code in plain rows that is still to be coloured."""

    def __init__(self, first: int, sources: Sequence[str], language: str, lead: int, width: int) -> None:
        self.first = first
        """Index of its first row among the lines around it."""
        self._sources = [source.expandtabs(TAB) for source in sources]
        self.language = language
        self._lead = lead
        self._width = width
        self._row = 0
        self._next = 0
        self._coloured: Iterator[tuple[Span, ...]] | None = None
        self.done = False

    @property
    def is_lexed(self) -> bool:
        """True when it can be coloured without waiting for the lexing process."""
        return self._coloured is not None

    def lex(self) -> None:
        """Ask for its colours; blocks: call it from a thread."""
        self._coloured = iter(list(colour_lines("\n".join(self._sources), self.language)))

    def work(self, lines: list[StyledLine], limit: int) -> tuple[int, int]:
        """Colour up to `limit` more source lines in place; returns the first row changed and the one after the last."""
        if self._coloured is None:
            self.lex()  # the caller has lexed it in a thread before
        start = self.first + self._row
        for _ in range(limit):
            spans = None if self._coloured is None else next(self._coloured, None)
            if spans is None or self._next >= len(self._sources):
                self.done = True
                break
            source = self._sources[self._next]
            self._next += 1
            same = "".join(span.text for span in spans) == source
            rows = wrap(plain_code(source), max(self._width - 2, 1), hard=True)
            position = self.first + self._row
            if same:
                for offset in range(len(rows)):
                    gutter = lines[position + offset].spans[: self._lead]
                    lines[position + offset] = code_rows(spans, gutter, self._width)[offset]
            self._row += len(rows)
        return start, self.first + self._row


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
    for shown in _clean_pieces(text):
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


def _clean_pieces(text: str) -> Iterator[str]:
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
