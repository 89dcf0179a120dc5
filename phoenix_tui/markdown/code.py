"""Code as tinted rows: at once plain, then coloured slice by slice with the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, cast

from msgspec import Struct

from phoenix_tui.markdown.lines import CODE, QUIET, Line, Look, Span, Surface, Tone, altered, spans_width
from phoenix_tui.markdown.wrap import wrap


class _TokenKind(Protocol):
    """A Pygments token type."""

    @property
    def parent(self) -> _TokenKind | None:
        """The more general type."""
        ...


class _Lexer(Protocol):
    """A Pygments lexer."""

    def get_tokens(self, text: str) -> Iterable[tuple[_TokenKind, str]]:
        """Types and texts in order, lazily."""
        ...


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
    "Keyword": altered(CODE, tone=Tone.KEYWORD),
    "Name": CODE,
    "Literal.String": altered(CODE, tone=Tone.STRING),
    "Literal.Number": altered(CODE, tone=Tone.NUMBER),
    "Comment": _COMMENT,
    "Name.Function": altered(CODE, tone=Tone.NAME),
    "Name.Class": altered(CODE, tone=Tone.NAME),
    "Name.Decorator": altered(CODE, tone=Tone.NAME),
    "Name.Tag": altered(CODE, tone=Tone.NAME),
    "Name.Builtin": altered(CODE, tone=Tone.NAME),
    "Name.Namespace": altered(CODE, tone=Tone.NAME),
    "Generic.Inserted": altered(CODE, tone=Tone.GOOD),
    "Generic.Deleted": altered(CODE, tone=Tone.BAD),
    "Generic.Heading": altered(CODE, bold=True),
    "Generic.Subheading": altered(CODE, bold=True),
}
_looks: dict[object, Look] = {}
_loaded: set[str] = set()
"""Languages whose patterns are compiled, or known to nobody."""


def code_rows(spans: Sequence[Span], gutter: tuple[Span, ...], width: int) -> list[Line]:
    """One source line of code as rows, tinted to the full `width` (cells right of `gutter`)."""
    margin = spans_width(gutter) + 1
    rows: list[Line] = []
    for row, joint in wrap(spans, max(width - 2, 1), hard=True):
        blank = Span(" " * max(width - 1 - spans_width(row), 1), CODE)
        rows.append(Line((*gutter, _PAD, *row, blank), joint, margin))
    return rows


def plain_code(line: str) -> tuple[Span, ...]:
    """A source line before it is coloured."""
    return (Span(line.expandtabs(TAB), CODE),) if line.strip() else ()


def coloured_lines(code: str, language: str) -> Iterator[tuple[Span, ...]] | None:
    """The source lines of `code` in syntax colours, made lazily; None when nobody knows `language`."""
    lexer = _lexer(language)
    return None if lexer is None else _coloured(lexer, code)


def is_loaded(language: str) -> bool:
    """Whether code in `language` can be coloured at once."""
    return not language or language in _loaded


def load(language: str) -> None:
    """Compile the patterns of `language`, up to 0.3 s of work the first time: call it from a thread."""
    for _ in coloured_lines("x\n", language) or ():
        pass
    _loaded.add(language)


def _lexer(language: str) -> _Lexer | None:
    # Loading Pygments takes 41 ms (LIBRARIES 3), so not before the first fence; it ships no types.
    from pygments.lexers import (  # noqa: PLC0415 - as said
        get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType] - as said
    )
    from pygments.util import ClassNotFound  # noqa: PLC0415 - as said

    if not language:
        return None
    try:
        return cast("_Lexer", get_lexer_by_name(language, stripnl=False, ensurenl=True))
    except ClassNotFound:
        return None


def _coloured(lexer: _Lexer, code: str) -> Iterator[tuple[Span, ...]]:
    line: list[Span] = []
    for kind, text in lexer.get_tokens(code.expandtabs(TAB)):
        look = _looks.get(kind) or _look(kind)
        first, *others = text.split("\n")
        if first:
            line.append(Span(first, look))
        for other in others:
            yield tuple(line)
            line = [Span(other, look)] if other else []
    if line:
        yield tuple(line)


def _look(kind: _TokenKind) -> Look:
    """The look of a token: that of its nearest named ancestor."""
    ancestor: _TokenKind | None = kind
    while ancestor is not None:
        found = _TONES.get(str(ancestor).removeprefix("Token."))
        if found is not None:
            return _looks.setdefault(kind, found)
        ancestor = ancestor.parent
    return _looks.setdefault(kind, CODE)


class CodeJob:
    """Code that stands in plain rows and is still to be coloured."""

    def __init__(self, first: int, sources: Sequence[str], language: str, lead: int, width: int) -> None:
        self.first = first
        """The index of its first row among the lines it stands in."""
        self._sources = [source.expandtabs(TAB) for source in sources]
        self.language = language
        self._lead = lead
        self._width = width
        self._row = 0
        self._next = 0
        self._coloured: Iterator[tuple[Span, ...]] | None = None
        self.done = False

    def work(self, lines: list[Line], limit: int) -> tuple[int, int]:
        """Colour up to `limit` more source lines in place; gives the first row changed and the one after the last."""
        if self._coloured is None:
            self._coloured = coloured_lines("\n".join(self._sources), self.language)
        start = self.first + self._row
        for _ in range(limit):
            spans = None if self._coloured is None else next(self._coloured, None)
            if spans is None or self._next >= len(self._sources):
                self.done = True
                break
            self._place(lines, spans)
        return start, self.first + self._row

    def _place(self, lines: list[Line], spans: tuple[Span, ...]) -> None:
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
