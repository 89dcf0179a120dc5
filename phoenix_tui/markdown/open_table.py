"""A long table that is still streaming: its columns are settled, so each row is laid out once as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markdown_it.token import Token
from msgspec import Struct
from msgspec.structs import replace

from phoenix_tui.markdown.lines import Span
from phoenix_tui.markdown.table import DECIDING, Cell, body_lines, column_widths, read_table, table_lines

_HEAD = 2
"""Source lines before the first row: the header and the line below it."""


class OpenTable(Struct, frozen=True):
    """Head of a table that later rows need: its source, which makes rows of the text below, and its columns."""

    head: str
    widths: tuple[int, ...]
    alignments: tuple[str, ...]

    def lines(self, rows: Sequence[Sequence[Cell]]) -> Iterator[tuple[Span, ...]]:
        """Further rows."""
        return body_lines(rows, self.widths, self.alignments)


class Grown(Struct, frozen=True):
    """Parts of a table at the end of a text that can be settled, and the open rest."""

    table: OpenTable
    settled: tuple[tuple[Span, ...], ...]
    rest: str
    """The source that stays open, below a head of its own."""
    open: tuple[tuple[Span, ...], ...]


def grown(tokens: Sequence[Token], source: str, before: OpenTable | None, width: int) -> Grown | None:
    """Settle every whole row of the table that `source` begins with; None while it is short."""
    sources = source.split("\n")
    inside = (tokens[0].map or [0, 0])[1] - (tokens[0].map or [0, 0])[0]
    whole = min(inside, len(sources) - 1) - _HEAD
    if whole < 1 or (before is None and whole <= DECIDING):
        return None
    found = read_table(tokens)
    table = before or OpenTable("\n".join(sources[:_HEAD]), tuple(column_widths(found, width)), found.alignments)
    rows = table.lines(found.rows[:whole])
    if before is None:
        rows = table_lines(replace(found, rows=found.rows[:whole]), width)
    rest = "\n".join([table.head, *sources[_HEAD + whole :]])
    return Grown(table, tuple(rows), rest, tuple(table.lines(found.rows[whole:])))
