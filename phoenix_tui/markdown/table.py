"""Tables: a bold header, one rule, columns two cells apart; numbers are right-aligned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from markdown_it.token import Token
from msgspec import Struct

from phoenix_tui.markdown.inline import inline_lines
from phoenix_tui.markdown.lines import PLAIN, QUIET, Span, altered, spans_width
from phoenix_tui.markdown.wrap import wrap

Cell = list[Span]
_GAP: Final = 2
_NUMBER: Final = re.compile(r"[-+−~≈<>≤≥$€£]?\d[\d.,  _]*\s?(%|[a-zA-Zµ]{1,3})?")


DECIDING: Final = 100
"""Rows that decide the widths and sides of the columns: a longer table continues to stream without moving them."""


_SLACK: Final = 3
"""Cells by which the columns of a long table are wider where there is room: its later numbers have more digits."""


class Table(Struct, frozen=True):
    """The cells of a table, and which columns end flush."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    alignments: tuple[str, ...]


def read_table(tokens: Sequence[Token]) -> Table:
    """The tokens from `table_open` to `table_close` as cells."""
    rows: list[list[Cell]] = []
    alignments: list[str] = []
    for position, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in {"th_open", "td_open"}:
            head = token.type == "th_open"
            if head:
                alignments.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
            content = tokens[position + 1].children or []
            look = altered(PLAIN, bold=True) if head else PLAIN
            rows[-1].append([span for line in inline_lines(content, look) for span in line])
    body = tuple(tuple(row) for row in rows[1:])
    deciding = body[:DECIDING]
    return Table(tuple(rows[0]), body, tuple(_alignment(deciding, column, a) for column, a in enumerate(alignments)))


def _alignment(rows: Sequence[Sequence[Cell]], column: int, wanted: str) -> str:
    if wanted:
        return wanted
    texts = [text for row in rows if (text := "".join(span.text for span in row[column]).strip())]
    return "right" if texts and all(_NUMBER.fullmatch(text) for text in texts) else "left"


def table_lines(table: Table, width: int) -> Iterator[tuple[Span, ...]]:
    """The rows of a table in at most `width` cells; cells that do not fit are wrapped."""
    widths = column_widths(table, width)
    yield from _row_lines(table.header, widths, table.alignments)
    yield (Span("─" * min(sum(widths) + _GAP * (len(widths) - 1), width), QUIET),)
    yield from body_lines(table.rows, widths, table.alignments)


def body_lines(
    rows: Sequence[Sequence[Cell]], widths: Sequence[int], alignments: Sequence[str]
) -> Iterator[tuple[Span, ...]]:
    """Rows below the header in columns that are settled."""
    for row in rows:
        yield from _row_lines(row, widths, alignments)


def column_widths(table: Table, width: int) -> list[int]:
    """Natural widths, the widest narrowed until all fit."""
    widths = [
        max(1, *(spans_width(row[column]) for row in (table.header, *table.rows[:DECIDING])))
        for column in range(len(table.header))
    ]
    room = max(width - _GAP * (len(widths) - 1), len(widths))
    excess = sum(widths) - room
    if len(table.rows) > DECIDING:
        slack = max(min(-excess // len(widths), _SLACK), 0)
        return [size + slack for size in widths] if excess <= 0 else _narrowed(widths, excess)
    return _narrowed(widths, excess)


def _narrowed(widths: list[int], excess: int) -> list[int]:
    while excess > 0:
        widest = max(widths)
        second = max((size for size in widths if size < widest), default=1)
        columns = [column for column, size in enumerate(widths) if size == widest]
        step = max(1, min(widest - second, excess // len(columns)))
        if widest == 1:
            break
        for column in columns:
            if excess > 0:
                widths[column] -= step
                excess -= step
    return widths


def _row_lines(row: Sequence[Cell], widths: Sequence[int], alignments: Sequence[str]) -> Iterator[tuple[Span, ...]]:
    columns = [[spans for spans, _ in wrap(cell, size)] for cell, size in zip(row, widths, strict=True)]
    for level in range(max(len(column) for column in columns)):
        spans: list[Span] = []
        for position, (column, size) in enumerate(zip(columns, widths, strict=True)):
            cell = column[level] if level < len(column) else ()
            last = position == len(columns) - 1
            spans.extend(_aligned(cell, size, alignments[position], trailing=not last))
            if not last:
                spans.append(Span(" " * _GAP))
        yield tuple(spans)


def _aligned(cell: tuple[Span, ...], size: int, alignment: str, *, trailing: bool) -> list[Span]:
    room = size - spans_width(cell)
    before = room if alignment == "right" else room // 2 if alignment == "center" else 0
    after = room - before if trailing else 0
    padded = [Span(" " * before)] if before > 0 else []
    padded.extend(cell)
    if after > 0:
        padded.append(Span(" " * after))
    return padded
