"""A changed file: one heading row, then numbered lines, tinted and marked + or -, one below or beside the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from phoenix_tui.markdown.lines import MARGIN, QUIET, Span, StyledLine, TextStyle, TextTone, spans_width
from phoenix_tui.text.cells import cut_middle
from phoenix_tui.widgets.blocks.check_rows import check_rows
from phoenix_tui.widgets.blocks.diff_colours import DiffColours
from phoenix_tui.widgets.blocks.diff_folding import folded
from phoenix_tui.widgets.blocks.diff_layout import DiffLayout
from phoenix_tui.widgets.blocks.diff_rows import GAP, MOST_ROWS, DiffRow, diff_rows
from phoenix_tui.widgets.blocks.rows import column
from tools.clean import clean, clean_line
from tools.contract import DiffDisplay
from tools.wording import counted

OPEN_ROWS: Final = 12
"""Rows of a diff that stay open (docs/decisions/looks.md)."""
_INDENT: Final = Span(" " * MARGIN)


class DiffBlock(NamedTuple):
    """A changed file as lines, and their uncoloured rest."""

    lines: list[StyledLine]
    colours: DiffColours


def diff_block(display: DiffDisplay, width: int, *, is_open: bool, action: str = "", right: str = "") -> DiffBlock:
    """The block of one changed file; lines that are too long are cut while it is folded and wrapped once it is open."""
    rows = list(diff_rows(clean(display.diff)))
    shown = rows[: MOST_ROWS - 1] if is_open and len(rows) > MOST_ROWS else rows
    if not is_open and len(rows) > OPEN_ROWS:
        shown = folded(rows, OPEN_ROWS - 1)
    layout = DiffLayout.fitting(shown, width, is_open=is_open)
    lines = [_heading(display, width, action, right)]
    pairs = list(layout.pairs(shown))
    colours = DiffColours(lines, layout, pairs, clean_line(display.path))
    for pair in pairs:
        lines.extend(layout.lines(pair))
    if hidden := _lines_in(rows) - _lines_in(shown):
        text = f"{' ' * layout.digits} … +{counted(hidden, 'line')}"
        lines.append(StyledLine((_INDENT, Span(text, QUIET, "" if is_open else action))))
    lines.extend(check_rows(display.checks, width, is_open=is_open, action=action))
    return DiffBlock(lines, colours)


def _lines_in(rows: Sequence[DiffRow]) -> int:
    return sum(row.sign != GAP for row in rows)


def _heading(display: DiffDisplay, width: int, action: str, right: str) -> StyledLine:
    counts = (
        Span(f"+{display.added}", TextStyle(TextTone.GOOD)),
        Span(" "),
        Span(f"-{display.removed}", TextStyle(TextTone.BAD)),
    )
    note = "  new" if display.created else ""
    taken = MARGIN + 4 + sum(len(span.text) for span in counts) + len(note) + (len(right) + 2 if right else 0)
    path = cut_middle(clean_line(display.path), max(column(width) - taken, 1))
    spans = [
        _INDENT,
        Span("± ", TextStyle(TextTone.GOOD)),
        Span(path, TextStyle(bold=True)),
        Span("  "),
        *counts,
        Span(note, QUIET),
    ]
    line = StyledLine(tuple(spans))
    gap = column(width) - spans_width(spans) - len(right)
    if right and gap >= 2:
        line = StyledLine((*spans, Span(" " * gap), Span(right, QUIET)))
    return line._replace(spans=tuple(span._replace(action=action) for span in line.spans))
