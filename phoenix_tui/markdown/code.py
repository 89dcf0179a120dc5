"""Code as tinted rows: at once plain, then coloured slice by slice with the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from phoenix_tui.markdown.lines import CODE, QUIET, Span, StyledLine, Surface, TextTone, altered, spans_width
from phoenix_tui.markdown.wrap import wrap


class CodeBlock(Struct, frozen=True):
    """A piece of code as it was written, and the rows it takes among the lines around it."""

    first: int
    after: int
    text: str
    language: str


TAB = 4
_PAD = Span(" ", CODE)
_COMMENT = altered(QUIET, surface=Surface.CODE)
_TONES = {
    "Keyword": altered(CODE, tone=TextTone.KEYWORD),
    "Name": CODE,
    "Literal.String": altered(CODE, tone=TextTone.STRING),
    "Literal.Number": altered(CODE, tone=TextTone.NUMBER),
    "Comment": _COMMENT,
    "Name.Function": altered(CODE, tone=TextTone.NAME),
    "Name.Class": altered(CODE, tone=TextTone.NAME),
    "Name.Decorator": altered(CODE, tone=TextTone.NAME),
    "Name.Tag": altered(CODE, tone=TextTone.NAME),
    "Name.Builtin": altered(CODE, tone=TextTone.NAME),
    "Name.Namespace": altered(CODE, tone=TextTone.NAME),
    "Generic.Inserted": altered(CODE, tone=TextTone.GOOD),
    "Generic.Deleted": altered(CODE, tone=TextTone.BAD),
    "Generic.Heading": altered(CODE, bold=True),
    "Generic.Subheading": altered(CODE, bold=True),
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
    """A source line before it is coloured."""
    return (Span(line.expandtabs(TAB), CODE),) if line.strip() else ()


def coloured_lines(code: str, language: str) -> Iterator[tuple[Span, ...]]:
    """The source lines of `code` in syntax colours, as far as they are known; blocks: call it from a thread.

    Lexers run in a process of their own, which says nothing but lengths.
    """
    from tools.lexing.client import lexing  # noqa: PLC0415 - with the first fence

    lines = code.expandtabs(TAB).split("\n")
    pieces = lexing.lines("\n".join(lines), language, _KINDS)
    return (_spans(line, known) for line, known in zip(lines, pieces, strict=False))


def _spans(line: str, pieces: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    """One line in its pieces; plain where they do not make up the line."""
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
        self._coloured = iter(list(coloured_lines("\n".join(self._sources), self.language)))

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
            self._place(lines, spans)
        return start, self.first + self._row

    def _place(self, lines: list[StyledLine], spans: tuple[Span, ...]) -> None:
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
