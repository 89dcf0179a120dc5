"""Block tokens -> lines: paragraphs, headings, lists, quotes, code, tables, rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from markdown_it.token import Token
from msgspec import Struct, field

from phoenix_tui.markdown.bounded import DEEPEST
from phoenix_tui.markdown.code import CodeBlock, CodeJob, code_rows, plain_code
from phoenix_tui.markdown.inline import inline_lines
from phoenix_tui.markdown.lines import PLAIN, QUIET, Span, StyledLine, TextStyle, altered, cells, spans_width
from phoenix_tui.markdown.table import read_table, table_lines
from phoenix_tui.markdown.wrap import wrap

_BULLETS: Final = "•◦▪"
_QUOTE: Final = Span("│ ", QUIET)
MINIMUM_WIDTH: Final = 8
"""Cells a text column keeps however deep it is nested."""


def too_deep(tokens: Sequence[Token], start: int, end: int) -> bool:
    """True when the parser has left something out of a block, so that only its source shows all of it."""
    return any(
        token.level == DEEPEST - 1 and token.nesting == 1 and token.type != "paragraph_open"
        for token in tokens[start:end]
    )


class Gutter:
    """Prefix of a block: the first form once (a bullet), then the other (its hanging indent)."""

    def __init__(self, first: tuple[Span, ...], rest: tuple[Span, ...], parent: Gutter | None = None) -> None:
        self._first: tuple[Span, ...] | None = first
        self._rest = rest
        self._parent = parent

    def take(self) -> tuple[Span, ...]:
        """The gutter of the next line."""
        own, self._first = (self._rest if self._first is None else self._first), None
        return own if self._parent is None else (*self._parent.take(), *own)

    @property
    def width(self) -> int:
        """Cells it takes."""
        return spans_width(self._rest) + (0 if self._parent is None else self._parent.width)

    @property
    def lead(self) -> int:
        """Spans it puts before a line."""
        return len(self._rest) + (0 if self._parent is None else self._parent.lead)


class Page(Struct, frozen=True):
    """Destination of lines: `width` counts all cells, gutters included."""

    lines: list[StyledLine]
    jobs: list[CodeJob]
    width: int
    codes: list[CodeBlock] = field(default_factory=list[CodeBlock])

    def room(self, gutter: Gutter) -> int:
        """The cells right of a gutter."""
        return max(self.width - gutter.width, MINIMUM_WIDTH)

    def text(self, source_lines: Sequence[Sequence[Span]], gutter: Gutter) -> None:
        """Put wrapped text."""
        for source in source_lines:
            for row, joint in wrap(source, self.room(gutter)):
                self.lines.append(StyledLine((*gutter.take(), *row), joint))

    def code(self, sources: Sequence[str], language: str, gutter: Gutter) -> None:
        """Put code, plain, with a job to colour it."""
        first, width = len(self.lines), self.room(gutter)
        for source in sources or [""]:
            self.code_line(source, gutter)
        if sources:
            self.codes.append(CodeBlock(first, len(self.lines), "\n".join(sources), language))
        if language:
            self.jobs.append(CodeJob(first, sources, language, gutter.lead, width))

    def code_line(self, source: str, gutter: Gutter) -> None:
        """Put one plain line of code."""
        spans = plain_code(source)
        rows = len(wrap(spans, max(self.room(gutter) - 2, 1), hard=True))
        gutters = [gutter.take() for _ in range(rows)]
        for index, own in enumerate(gutters):
            self.lines.append(code_rows(spans, own, self.room(gutter))[index])


def block_ranges(tokens: Sequence[Token], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The blocks directly within `tokens[start:end]`, each as first token and the one after its last."""
    position = start
    while position < end:
        token = tokens[position]
        after = position + 1
        if token.nesting == 1:
            while not (tokens[after].level == token.level and tokens[after].nesting == -1):
                after += 1
            after += 1
        yield position, after
        position = after


def code_sources(content: str) -> list[str]:
    """The lines of a code block without blank ones at its end."""
    sources = content.split("\n")
    while sources and not sources[-1].strip():
        sources.pop()
    return sources


def fence_language(info: str) -> str:
    """The language an info string names, empty when none."""
    return info.split(maxsplit=1)[0].strip("{}.").lower() if info.strip() else ""


def lay_block(tokens: Sequence[Token], start: int, end: int, page: Page, gutter: Gutter, depth: int = 0) -> None:
    """Put one block."""
    token = tokens[start]
    match token.type:
        case "paragraph_open":
            page.text(inline_lines(tokens[start + 1].children or []), gutter)
        case "heading_open":
            page.text(inline_lines(tokens[start + 1].children or [], _heading_look(token.tag)), gutter)
        case "fence":
            page.code(code_sources(token.content), fence_language(token.info), gutter)
        case "code_block":
            page.code(code_sources(token.content), "", gutter)
        case "hr":
            page.lines.append(StyledLine((*gutter.take(), Span("─" * page.room(gutter), QUIET))))
        case "blockquote_open":
            lay_blocks(tokens, start + 1, end - 1, page, Gutter((_QUOTE,), (_QUOTE,), gutter), depth)
        case "bullet_list_open" | "ordered_list_open":
            items = list(block_ranges(tokens, start + 1, end - 1))
            lay_items(tokens, items, page, gutter, first_number(token), depth)
        case "table_open":
            for spans in table_lines(read_table(tokens[start:end]), page.room(gutter)):
                page.lines.append(StyledLine((*gutter.take(), *spans)))
        case _:
            page.text([[Span(token.content, PLAIN)]], gutter)


def _heading_look(tag: str) -> TextStyle:
    return altered(PLAIN, bold=True, underline=tag == "h1", italic=tag > "h2")


def first_number(token: Token) -> int | None:
    """The number of a list's first item; None for bullets."""
    return int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None


def lay_items(
    tokens: Sequence[Token],
    items: Sequence[tuple[int, int]],
    page: Page,
    gutter: Gutter,
    number: int | None,
    depth: int = 0,
) -> None:
    """Put list items without blank lines between them; `number` is the first one's."""
    for offset, (start, end) in enumerate(items):
        mark = f"{_BULLETS[depth % len(_BULLETS)]} " if number is None else f"{number + offset}. "
        hanging = Gutter((Span(mark, QUIET),), (Span(" " * cells(mark)),), gutter)
        if end - start == 2:
            page.lines.append(StyledLine(hanging.take()))
        lay_blocks(tokens, start + 1, end - 1, page, hanging, depth + 1)


def lay_blocks(tokens: Sequence[Token], start: int, end: int, page: Page, gutter: Gutter, depth: int = 0) -> None:
    """Put blocks one below the other; a list hugs the paragraph it belongs to."""
    before = ""
    for first, after in block_ranges(tokens, start, end):
        kind = tokens[first].type
        if before and not (depth and kind.endswith("list_open") and before == "paragraph_open"):
            page.lines.append(StyledLine(gutter.take()))
        lay_block(tokens, first, after, page, gutter, depth)
        before = kind
