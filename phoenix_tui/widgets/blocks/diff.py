"""A changed file: one heading row, then numbered lines, tinted and marked + or -."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from phoenix_tui.markdown.lines import MARGIN, PLAIN, QUIET, Line, Look, Span, Surface, Tone, cells, spans_width
from phoenix_tui.markdown.wrap import ellipsize
from phoenix_tui.widgets.blocks.rows import column, count_text
from tools.clean import clean, clean_line
from tools.contract import DiffDisplay

OPEN_ROWS: Final = 12
"""Rows of a diff that stay open (LOOK 7)."""
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_ADDED: Final = Look(Tone.GOOD, Surface.ADDED)
_REMOVED: Final = Look(Tone.BAD, Surface.REMOVED)
_INDENT: Final = Span(" " * MARGIN)


class DiffRow(Struct, frozen=True):
    """One line of a diff: its number in the file it belongs to, `+`, `-` or blank, and its text."""

    number: int
    sign: str
    text: str


def diff_rows(diff: str) -> Iterator[DiffRow]:
    """The rows of a unified diff; a row with sign `⋯` stands between two hunks."""
    old = new = 0
    started = False
    for line in diff.split("\n"):
        if hunk := _HUNK.match(line):
            if started:
                yield DiffRow(0, "⋯", "")
            old, new, started = int(hunk[1]), int(hunk[2]), True
        elif not started or not line or line[0] == "\\":
            continue
        elif line[0] == "-":
            yield DiffRow(old, "-", line[1:])
            old += 1
        else:
            yield DiffRow(new, "+" if line[0] == "+" else " ", line[1:])
            old, new = (old, new + 1) if line[0] == "+" else (old + 1, new + 1)


def diff_lines(display: DiffDisplay, width: int, *, is_open: bool, action: str = "", right: str = "") -> list[Line]:
    """The block of one changed file."""
    rows = list(diff_rows(clean(display.diff)))
    shown = rows if is_open or len(rows) <= OPEN_ROWS else rows[: OPEN_ROWS - 1]
    hidden = len(rows) - len(shown)
    digits = max((len(str(row.number)) for row in shown), default=1)
    lines = [_heading(display, width, action, right)]
    lines.extend(_line(row, digits, column(width)) for row in shown)
    if hidden:
        text = f"{' ' * digits} … +{count_text(hidden, 'line')}"
        lines.append(Line((_INDENT, Span(text, QUIET, action))))
    return lines


def _heading(display: DiffDisplay, width: int, action: str, right: str) -> Line:
    counts = (Span(f"+{display.added}", Look(Tone.GOOD)), Span(" "), Span(f"-{display.removed}", Look(Tone.BAD)))
    note = "  new" if display.created else ""
    taken = MARGIN + 4 + sum(len(span.text) for span in counts) + len(note) + (len(right) + 2 if right else 0)
    path = ellipsize(clean_line(display.path), max(column(width) - taken, 1))
    spans = [_INDENT, Span("± ", Look(Tone.GOOD)), Span(path, Look(bold=True)), Span("  "), *counts, Span(note, QUIET)]
    line = Line(tuple(spans))
    gap = column(width) - spans_width(spans) - len(right)
    if right and gap >= 2:
        line = Line((*spans, Span(" " * gap), Span(right, QUIET)))
    return line._replace(spans=tuple(span._replace(action=action) for span in line.spans))


def _line(row: DiffRow, digits: int, width: int) -> Line:
    if row.sign == "⋯":
        return Line((_INDENT, Span(f"{' ' * digits} ⋯", QUIET)))
    look = {"+": _ADDED, "-": _REMOVED}.get(row.sign, PLAIN)
    body = ellipsize(row.text.expandtabs(4), width - MARGIN - digits - 3)
    number = Span(f"{row.number:>{digits}} ", look._replace(tone=Tone.QUIET))
    text = Span(body, look._replace(tone=Tone.TEXT))
    fill = Span(" " * max(width - MARGIN - digits - 3 - cells(body), 0), look)
    return Line((_INDENT, number, Span(f"{row.sign} ", look), text, fill), margin=MARGIN + digits + 3)
