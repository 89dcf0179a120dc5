"""A trace in columns: the tree, a bar on the run's time line, duration, tokens and cost of each span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

from engine.records.traces import SpanKind, SpanStatus, Trace, TraceSpan
from phoenix_tui.text.labels import DONE, FAILED, RUNNING, STOPPED, Glyph
from phoenix_tui.text.trace_text import (
    MOST_INDENT,
    heading,
    note_left_out,
    span_cost,
    span_time,
    span_tokens,
    span_words,
)

GLYPHS: Final = {
    SpanStatus.OK: DONE,
    SpanStatus.ERROR: FAILED,
    SpanStatus.CANCELLED: STOPPED,
    SpanStatus.RUNNING: RUNNING,
}
TIME_WIDTH: Final = 8
TOKENS_WIDTH: Final = 13
COST_WIDTH: Final = 7
GAP: Final = 2
WITH_TOKENS: Final = 72
"""Columns from which tokens have a place."""
LEAST_BAR: Final = 6
BAR_PERCENT: Final = 40
"""Per cent of the room beside the figures."""
BAR: Final = "━"
PLAIN_BAR: Final = "="


class TraceRow(Struct, frozen=True):
    """One span in columns of fixed width."""

    glyph: Glyph
    label: str
    before: str
    bar: str
    after: str
    figures: str


def trace_rows(trace: Trace, spans: Sequence[TraceSpan], width: int, *, plain: bool) -> list[TraceRow]:
    """Rows of `width` cells for some spans of a trace; the glyph and its blank take two of them."""
    figures = TIME_WIDTH + COST_WIDTH + (TOKENS_WIDTH if width >= WITH_TOKENS else 0)
    room = max(width - figures - 2 * GAP - 2, LEAST_BAR + 1)
    bar = max(room * BAR_PERCENT // 100, LEAST_BAR)
    begin, end = window(trace)
    sign = PLAIN_BAR if plain else BAR
    rows: list[TraceRow] = []
    for span in spans:
        first, cells = bar_place(span, begin, end, bar)
        label = fit_cells(f"{'  ' * min(span.depth, MOST_INDENT)}{span_words(span)}", room - bar)
        figure = "".join([
            span_time(span.seconds).rjust(TIME_WIDTH),
            span_tokens(span).rjust(TOKENS_WIDTH) if width >= WITH_TOKENS else "",
            span_cost(span).rjust(COST_WIDTH),
        ])
        row = TraceRow(GLYPHS[span.status], label, " " * first, sign * cells, " " * (bar - first - cells), figure)
        rows.append(row)
    return rows


def trace_lines(trace: Trace, width: int, *, plain: bool) -> list[str]:
    lines = [heading(trace)]
    for row in trace_rows(trace, trace.spans, width, plain=plain):
        gap = " " * GAP
        lines.append(f"{row.glyph.mark(plain)} {row.label}{gap}{row.before}{row.bar}{row.after}{gap}{row.figures}")
    return [*lines, *note_left_out(trace)]


def window(trace: Trace) -> tuple[float, float]:
    """Begin and end of the time line: of the run, or of a sub-agent that ended after it."""
    timed = [one for one in trace.spans if one.kind is not SpanKind.ASIDE]
    begin = trace.root.started_at
    return begin, max([begin, *(one.started_at + one.seconds for one in timed)])


def bar_place(span: TraceSpan, begin: float, end: float, width: int) -> tuple[int, int]:
    """First cell and number of cells of a span's bar, at least one; what is beside the time line is at its edge."""
    share = width / (end - begin) if end > begin else 0.0
    first = min(max(int((span.started_at - begin) * share), 0), width - 1)
    last = min(max(round((span.started_at + span.seconds - begin) * share), first + 1), width)
    return first, last - first


def fit_cells(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return f"{set_cell_size(text, max(width - 1, 0))}…"
