"""Markdown that grows: settled blocks are laid out once, the open end is parsed again (docs/decisions/textual.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from markdown_it.token import Token
from msgspec import Struct, field
from msgspec.structs import replace

from phoenix_tui.markdown import layout
from phoenix_tui.markdown.code import CodeBlock, CodeJob
from phoenix_tui.markdown.lines import BLANK, MARGIN, TEXT_COLUMN, Span, StyledLine
from tools.clean_pieces import PieceCleaner

_HEAD = 2
"""Source lines before the first row: the header and the line below it."""


class OpenTable(Struct, frozen=True):
    """Head of a table that later rows need: its source, which makes rows of the text below, and its columns."""

    head: str
    widths: tuple[int, ...]
    alignments: tuple[str, ...]

    def lines(self, rows: Sequence[Sequence[layout.Cell]]) -> Iterator[tuple[Span, ...]]:
        return layout.body_lines(rows, self.widths, self.alignments)


_MARGIN: Final = (Span(" " * MARGIN),)
SLICE: Final = 32_000
"""Work laid out in one step of a long text (see `heft`), at most about 60 ms."""
LONGEST: Final = 24_000
"""Work of one block that is still open: beyond, it is cut in two, since all of it is parsed for each frame."""
LONGEST_TABLE: Final = 4 * LONGEST
"""The same for a table, whose rows settle one by one once there are enough."""
_FENCE: Final = re.compile(r"( {0,3})(`{3,}|~{3,})")
_parser = layout.make_parser()


class _Unit(Struct, frozen=True):
    """The smallest part that settles: a block, or one item of a list."""

    first: int
    after: int
    line: int
    """First line in the tail."""
    kind: str
    number: int | None = None
    joins: bool = False
    """True when it continues the item above without a blank line."""


class _OpenFence(Struct):
    """A fence whose end has not come: its lines are put as they arrive, without the parser."""

    mark: str
    closer: re.Pattern[str]
    language: str
    indent: int
    first: int
    sources: list[str] = field(default_factory=list[str])


class MarkdownStream:
    """The lines of a text that grows; the first `settled` ones never change in number or text."""

    def __init__(self, width: int) -> None:
        self.width = min(width, TEXT_COLUMN + MARGIN)
        self.lines: list[StyledLine] = []
        self.settled = 0
        self.jobs: list[CodeJob] = []
        """Settled code that is plain until `colour` has processed it."""
        self.codes: list[CodeBlock] = []
        """Settled code as it was written."""
        self._raw: list[str] = []
        self.waiting = ""
        """Text that has not been laid out."""
        self.is_growing = False
        """True while more of it may come."""
        self._cleaner = PieceCleaner()
        self._tail = ""
        self._fence: _OpenFence | None = None
        self._table: OpenTable | None = None
        self._tail_kind = ""
        self._joins = ""
        self._number: int | None = None

    @property
    def source(self) -> str:
        return "".join(self._raw)

    def feed(self, text: str) -> int:
        """Add text; returns the index of the first line that may have changed."""
        self._raw.append(text)
        return self._grow(self._cleaner.feed(text))

    def _grow(self, text: str) -> int:
        first = self.settled
        while text:
            end = layout.piece_end(text, SLICE)
            self._tail, text = self._tail + text[:end], text[end:]
            self._advance()
            if self._fence is None and layout.heft(self._tail) > LONGEST:
                self._cut()
        return first

    def begin(self, text: str) -> None:
        self.waiting = text
        self.more()

    def add(self, text: str) -> int:
        """Take more of a growing text and lay out a slice; returns the index of the first changed line."""
        self.is_growing = True
        self.waiting += text
        return self.more()

    def end(self, rest: str) -> int:
        """Take the rest of a text that grew and lay out a slice; returns the first line that may have changed."""
        self.is_growing = False
        self.waiting = rest
        return self.more()

    def more(self) -> int:
        """Lay out the next slice; returns the index of the first line that may have changed."""
        end = layout.piece_end(self.waiting, SLICE)
        cut = self.waiting.rfind("\n", 0, end) + 1 if len(self.waiting) > end else 0
        piece, self.waiting = self.waiting[: cut or end], self.waiting[cut or end :]
        first = self.feed(piece)
        return first if self.waiting or self.is_growing else min(first, self.finish())

    def _cut(self) -> None:
        """Settle a block that grows beyond all bounds, up to its last whole line or word."""
        if self._tail_kind == "table_open" and layout.heft(self._tail) <= LONGEST_TABLE:
            return
        end = self._tail.rfind("\n") + 1 or self._tail.rfind(" ") + 1 or len(self._tail)
        self._tail, rest = self._tail[:end], self._tail[end:]
        del self.lines[self.settled :]
        self._settle(final=True)
        self._tail, self._table, self._joins = rest, None, ""
        self.settled = len(self.lines)
        if rest:
            self._advance()

    def finish(self) -> int:
        """Settle everything; returns the index of the first line that may have changed."""
        first = self._grow(self._cleaner.end())
        del self.lines[self.settled :]
        if self._fence is not None:
            self._grow_fence(self._fence, final=True)
        self._settle(final=True)
        return first

    def colour(self, limit: int) -> tuple[int, int] | None:
        """Colour up to `limit` source lines of code; returns the range of lines changed, None when all is done."""
        if not self.jobs:
            return None
        changed = self.jobs[0].work(self.lines, limit)
        if self.jobs[0].done:
            self.jobs.pop(0)
        return changed

    def _advance(self) -> None:
        del self.lines[self.settled :]
        while True:
            if self._fence is not None and not self._grow_fence(self._fence, final=False):
                return
            self._settle(final=False)
            if self._fence is None:
                return

    def _settle(self, *, final: bool) -> None:
        """Parse the open end once, settle the final part and show the rest."""
        tokens, source = _parser.parse(self._tail), self._tail
        units = list(self._units(tokens))
        complete = self._tail.count("\n") + 1 if final else self._tail.count("\n")
        certain = sum(unit.line < complete for unit in units)
        settling = certain if final else self._count_certain(units, certain)
        page = layout.Page(self.lines, self.jobs, self.width, self.codes)
        for unit in units[:settling]:
            self._lay(tokens, unit, page, source)
            self._table = None
        self.settled = len(self.lines)
        self._keep(units[settling] if settling < len(units) else None, final)
        self._tail_kind = units[settling].kind if settling < len(units) else ""
        if settling < certain and units[settling].kind == "fence" and self._enter_fence():
            return
        page = layout.Page(self.lines, [], self.width)
        if settling + 1 == len(units) and self._grow_table(tokens, units[settling], page):
            return
        for unit in units[settling:]:
            self._lay(tokens, unit, page, source)

    def _grow_table(self, tokens: Sequence[Token], unit: _Unit, page: layout.Page) -> bool:
        """Settle every whole row of the long table that the open end is; False where it is short, or something else."""
        own, sources = tokens[unit.first : unit.after], self._tail.split("\n")
        start, end = own[0].map or (0, 0)
        whole = min(end - start, len(sources) - 1) - _HEAD
        if unit.kind != "table_open" or whole < 1 or (self._table is None and whole <= layout.DECIDING):
            return False
        found, gutter = layout.read_table(own), layout.Gutter(_MARGIN, _MARGIN)
        if self._table is not None:
            rows = self._table.lines(found.rows[:whole])
        else:
            self.lines += [BLANK] if self.lines else []
            widths = tuple(layout.column_widths(found, page.room(gutter)))
            self._table = OpenTable("\n".join(sources[:_HEAD]), widths, found.alignments)
            rows = layout.table_lines(replace(found, rows=found.rows[:whole]), page.room(gutter))
        self.lines.extend(StyledLine((*gutter.take(), *spans)) for spans in rows)
        self.settled = len(self.lines)
        self._tail = "\n".join([self._table.head, *sources[_HEAD + whole :]])  # what stays open has a head of its own
        rows = self._table.lines(found.rows[whole:])
        self.lines.extend(StyledLine((*gutter.take(), *spans)) for spans in rows)
        return True

    def _count_certain(self, units: Sequence[_Unit], certain: int) -> int:
        """Number of units that may settle: all but the last whose first line is whole.

        An item with a bar would be read as a table's header once it began the text that is left.
        """
        cut = max(certain - 1, 0)
        lines = self._tail.split("\n") if "|" in self._tail else []
        while lines and cut and units[cut].joins and "|" in lines[units[cut].line]:
            cut -= 1
        return cut

    def _units(self, tokens: Sequence[Token]) -> Iterator[_Unit]:
        for first, after in layout.block_ranges(tokens, 0, len(tokens)):
            kind = tokens[first].type
            if not kind.endswith("list_open"):
                yield _Unit(first, after, _first_line(tokens[first]), kind)
                continue
            joins = first == 0 and self._joins == kind
            number = self._number if joins else layout.first_number(tokens[first])
            for offset, (start, end) in enumerate(layout.block_ranges(tokens, first + 1, after - 1)):
                own = None if number is None else number + offset
                yield _Unit(start, end, _first_line(tokens[start]), kind, own, joins or offset > 0)

    def _lay(self, tokens: Sequence[Token], unit: _Unit, page: layout.Page, source: str) -> None:
        gutter = layout.Gutter(_MARGIN, _MARGIN)
        if self._table is not None and unit.first == 0:
            rows = layout.read_table(tokens[: unit.after]).rows
            self.lines.extend(StyledLine((*gutter.take(), *spans)) for spans in self._table.lines(rows))
            return
        if self.lines and not unit.joins:
            self.lines.append(BLANK)
        if layout.too_deep(tokens, unit.first, unit.after):
            first, after = tokens[unit.first].map or [0, 0]
            page.text([[Span(line)] for line in source.split("\n")[first:after]], gutter)
        elif unit.kind.endswith("list_open"):
            layout.lay_items(tokens, [(unit.first, unit.after)], page, gutter, unit.number)
        else:
            layout.lay_block(tokens, unit.first, unit.after, page, gutter)

    def _keep(self, unit: _Unit | None, final: bool) -> None:
        """Drop the source before the first unit that stays open."""
        if unit is None:
            self._tail = "" if final else self._tail
            return
        self._joins, self._number = (unit.kind, unit.number) if unit.joins else ("", None)
        if unit.line:
            self._tail = "\n".join(self._tail.split("\n")[unit.line :])

    def _enter_fence(self) -> bool:
        """Take the tail's first line, which opens a fence, out of the parser's hands."""
        opening, _, rest = self._tail.partition("\n")
        match = _FENCE.match(opening)
        if match is None or ("|" in opening and "\n" not in rest):
            return False  # with a bar in it, the next line decides if it heads a table
        mark = match[2]
        closer = re.compile(rf" {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*")
        if self.lines:
            self.lines.append(BLANK)
        language = layout.fence_language(opening[match.end() :])
        self._fence = _OpenFence(mark[0], closer, language, len(match[1]), len(self.lines))
        self._tail = rest
        self.settled = len(self.lines)
        self._joins = ""
        return True

    def _grow_fence(self, fence: _OpenFence, *, final: bool) -> bool:
        """Put the lines that came; True when the fence is closed."""
        page, gutter = layout.Page(self.lines, [], self.width), layout.Gutter(_MARGIN, _MARGIN)
        *complete, rest = self._tail.split("\n")
        for position, line in enumerate(complete):
            if fence.closer.fullmatch(line):
                self._tail = "\n".join([*complete[position + 1 :], rest])
                return self._close_fence(fence)
            self._put_code(fence, line, page, gutter)
        self.settled = len(self.lines)
        self._tail = rest
        closes = fence.closer.fullmatch(rest) is not None
        if final:
            self._tail = ""
            if not closes:
                self._put_code(fence, rest, page, gutter)
            return self._close_fence(fence)
        if rest.strip(f" {fence.mark}"):  # a possible closing line is not shown as code
            page.code_line(_outdent(rest, fence.indent), gutter)
        return False

    @staticmethod
    def _put_code(fence: _OpenFence, line: str, page: layout.Page, gutter: layout.Gutter) -> None:
        source = _outdent(line, fence.indent)
        fence.sources.append(source)
        page.code_line(source, gutter)

    def _close_fence(self, fence: _OpenFence) -> bool:
        page, gutter = layout.Page(self.lines, self.jobs, self.width), layout.Gutter(_MARGIN, _MARGIN)
        while fence.sources and not fence.sources[-1].strip():
            fence.sources.pop()
            self.lines.pop()
        if not fence.sources:
            del self.lines[fence.first :]
            page.code([], "", gutter)
        else:
            self.codes.append(CodeBlock(fence.first, len(self.lines), "\n".join(fence.sources), fence.language))
        if fence.sources and fence.language:
            self.jobs.append(CodeJob(fence.first, fence.sources, fence.language, gutter.lead, page.room(gutter)))
        self._fence = None
        self.settled = len(self.lines)
        return True


def _first_line(token: Token) -> int:
    return token.map[0] if token.map else 0


def _outdent(line: str, indent: int) -> str:
    """`line` without as many leading columns as the fence that holds it has; a tab goes to the next multiple of 4."""
    columns = position = 0
    while columns < indent and position < len(line) and line[position] in " \t":
        columns += 4 - columns % 4 if line[position] == "\t" else 1
        position += 1
    return " " * max(columns - indent, 0) + line[position:]


def warm() -> None:
    MarkdownStream(80).begin("*a*")
