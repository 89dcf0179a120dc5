"""A changed file: one heading row, then numbered lines, tinted and marked + or -, one below or beside the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Final

from phoenix_tui.markdown.lines import (
    MARGIN,
    PLAIN,
    QUIET,
    TEXT_COLUMN,
    Line,
    Look,
    Span,
    Surface,
    Tone,
    altered,
    spans_width,
)
from phoenix_tui.markdown.wrap import ellipsize, wrap
from phoenix_tui.widgets.blocks.diff_rows import MOST_ROWS, DiffRow, MarkedRow, diff_rows, marked_runs
from phoenix_tui.widgets.blocks.rows import column, count_text
from tools.clean import clean, clean_line
from tools.contract import DiffDisplay

OPEN_ROWS: Final = 12
"""Rows of a diff that stay open (LOOK 7)."""
SPLIT_FROM: Final = 138
"""Columns from which before and after stand side by side: a pane of 140 without its margin at the right."""
_ADDED: Final = Look(Tone.GOOD, Surface.ADDED)
_REMOVED: Final = Look(Tone.BAD, Surface.REMOVED)
_LOOKS: Final = {"+": _ADDED, "-": _REMOVED}
_CHANGED: Final = {"+": Surface.ADDED_WORDS, "-": Surface.REMOVED_WORDS}
_INDENT: Final = Span(" " * MARGIN)
_BETWEEN: Final = Span(" │ ", QUIET)


def diff_lines(display: DiffDisplay, width: int, *, is_open: bool, action: str = "", right: str = "") -> list[Line]:
    """The block of one changed file; lines that are too long are cut while it is folded and wrapped once it is open."""
    rows = list(diff_rows(clean(display.diff)))
    most = MOST_ROWS if is_open else OPEN_ROWS
    shown = rows if len(rows) <= most else rows[: most - 1]
    digits = len(str(max((max(row.number, row.before) for row in shown), default=1)))
    lines = [_heading(display, width, action, right)]
    if width >= SPLIT_FROM:
        lines.extend(_beside(shown, digits, width, is_open=is_open))
    else:
        lines.extend(_below(shown, digits, column(width), is_open=is_open))
    if len(rows) > len(shown):
        text = f"{' ' * digits} … +{count_text(len(rows) - len(shown), 'line')}"
        lines.append(Line((_INDENT, Span(text, QUIET, "" if is_open else action))))
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


def _below(rows: Sequence[DiffRow], digits: int, width: int, *, is_open: bool) -> Iterator[Line]:
    """What was removed above what was added."""
    room = max(width - MARGIN - digits - 3, 1)
    margin = MARGIN + digits + 3
    for marked in chain.from_iterable(chain(old, new) for old, new in marked_runs(rows)):
        if marked.row.sign == "⋯":
            yield Line((_INDENT, Span(f"{' ' * digits} ⋯", QUIET)))
            continue
        for spans, joint in _cells(marked, marked.row.number, digits, room, is_open=is_open):
            yield Line((_INDENT, *spans), joint, margin)


def _beside(rows: Sequence[DiffRow], digits: int, width: int, *, is_open: bool) -> Iterator[Line]:
    """Before at the left, after at the right."""
    half = min((width - MARGIN - spans_width((_BETWEEN,))) // 2, TEXT_COLUMN + digits)
    room = half - digits - 3
    for old, new in marked_runs(rows):
        if old and old[0].row.sign == "⋯":
            yield Line((_INDENT, Span(f"{' ' * digits} ⋯", QUIET)))
            continue
        same = bool(old) and old[0].row.sign == " "
        for left, right in zip_longest(old, old if same else new):
            yield from _pair(left, right, digits, room, is_open=is_open)


def _pair(left: MarkedRow | None, right: MarkedRow | None, digits: int, room: int, *, is_open: bool) -> Iterator[Line]:
    """One line before and the one that took its place; either may be missing."""
    blank = ((Span(" " * (digits + 3 + room)),), None)
    number = 0 if left is None else left.row.before or left.row.number
    befores = iter(()) if left is None else _cells(left, number, digits, room, is_open=is_open)
    afters = iter(()) if right is None else _cells(right, right.row.number, digits, room, is_open=is_open)
    for (before, joint), (after, other) in zip_longest(befores, afters, fillvalue=blank):
        spans = (_INDENT, *before, _BETWEEN, *after)
        first = len(_INDENT.text) + digits + 3
        middle = len(_INDENT.text) + sum(len(span.text) for span in before)
        second = middle + len(_BETWEEN.text) + digits + 3
        end = middle + len(_BETWEEN.text) + sum(len(span.text) for span in after)
        yield Line(spans, joint if joint is not None else other, MARGIN, ((first, middle), (second, end)))


def _cells(
    marked: MarkedRow, number: int, digits: int, room: int, *, is_open: bool
) -> Iterator[tuple[tuple[Span, ...], str | None]]:
    """Number, sign and text of one line, filled to its width; more rows where it is open and longer."""
    sign = marked.row.sign
    look = _LOOKS.get(sign, PLAIN)
    plain = look._replace(tone=Tone.TEXT)
    strong = altered(plain, surface=_CHANGED.get(sign, plain.surface), bold=True)
    spans = tuple(Span(piece.text, strong if piece.changed else plain) for piece in marked.pieces)
    rows = wrap(spans, room, hard=True)
    if not is_open and len(rows) > 1:
        rows = [_cut(spans, room)]
    for place, (row, joint) in enumerate(rows):
        lead = f"{number:>{digits}} " if place == 0 else " " * (digits + 1)
        fill = Span(" " * max(room - spans_width(row), 0), look)
        mark = Span(f"{sign if place == 0 else ' '} ", look)
        yield (Span(lead, look._replace(tone=Tone.QUIET)), mark, *row, fill), joint


def _cut(spans: Sequence[Span], room: int) -> tuple[tuple[Span, ...], None]:
    first, _ = wrap(spans, max(room - 1, 1), hard=True)[0]
    return (*first, Span("…", QUIET._replace(surface=spans[0].look.surface))), None
