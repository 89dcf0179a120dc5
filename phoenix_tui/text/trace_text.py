"""A trace in words, and in columns: the tree, a bar on the run's time line, duration, tokens and cost of each span."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

from engine.records.traces import SpanContent, SpanKind, SpanStatus, Trace, TraceSpan, TraceSummary
from phoenix_tui.text.labels import DONE, FAILED, RUNNING, STOPPED, Glyph, clock, money, tokens
from tools.clean import clean_line
from tools.wording import pluralize

MOST_INDENT: Final = 6
"""Levels that are indented; deeper ones stay below each other."""
NOTHING_KEPT: Final = "not kept; trace_verbose = true keeps whole inputs from then on"


def spell_lines(trace: Trace) -> list[str]:
    lines = [heading(trace)]
    for span in trace.spans[1:]:
        facts = [outcome(span), span_time(span.seconds)]
        if span.usage is not None:
            facts.append(f"{tokens(input_tokens(span))} tokens in, {tokens(span.usage.output_tokens)} out")
        facts.append(span_cost(span))
        indent = "  " * min(span.depth - 1, MOST_INDENT)
        lines.append(f"{indent}{span_words(span)}: {', '.join(filter(None, facts))}")
    return [*lines, *note_left_out(trace)]


def heading(trace: Trace) -> str:
    root = trace.root
    own = [one for one in trace.spans if one.run_id == root.run_id]
    llm, tool = (sum(one.kind is kind for one in own) for kind in (SpanKind.LLM, SpanKind.TOOL))
    calls = f"{pluralize(llm, 'model call')}, {pluralize(tool, 'tool call')}"
    facts = [outcome(root), span_time(root.seconds), f"{calls} shown" if trace.left_out else calls]
    if root.usage is not None:
        sign = "~" if root.estimated else ""
        facts.append(f"{sign}{tokens(input_tokens(root))} in, {sign}{tokens(root.usage.output_tokens)} out")
    agents = sum(one.kind is SpanKind.AGENT for one in trace.spans) - 1
    facts += [span_cost(root), pluralize(agents, "sub-agent run") if agents else ""]
    return " · ".join(fact for fact in facts if fact)


def summary_words(one: TraceSummary) -> str:
    return f"{one.outcome.replace('_', ' ')} · {clean_line(one.prompt) or 'a run without a message'}"


def summary_facts(one: TraceSummary) -> tuple[str, ...]:
    began = time.strftime("%m-%d %H:%M", time.localtime(one.started_at))
    failed = f"{one.errors} failed" if one.errors else ""
    calls = pluralize(one.llm_calls + one.tool_calls, "call")
    return tuple(filter(None, (began, span_time(one.seconds), calls, failed, money(one.cost_usd))))


def details(span: TraceSpan, content: SpanContent) -> list[str]:
    """All that is known of a span, a fact a line, with its input and its output; from outside, so to be cleaned."""
    began = time.strftime("%H:%M:%S", time.localtime(span.started_at))
    lines = [f"{outcome(span)} · {span_time(span.seconds)} · began {began}"]
    if span.model:
        lines.append(f"model: {span.provider}/{span.model}" if span.provider else f"model: {span.model}")
    if span.usage is not None:
        used = span.usage
        lines.append(
            f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out, {used.cache_read_tokens:,} read from cache, "
            f"{used.cache_creation_tokens:,} written to it{' (estimated)' if span.estimated else ''}"
        )
        lines.append("price unknown" if span.cost_usd is None else f"cost: {money(span.cost_usd) or '$0.00'}")
    if span.attempt:
        lines.append(f"attempt {span.attempt + 1}")
    if span.error and span.error != content.output:
        lines.append(f"error: {span.error}")
    shown = content.input or ("" if span.kind is SpanKind.TOOL else NOTHING_KEPT)
    return [*lines, "", "Input", shown or "none", "", "Output", content.output or "none"]


def matches(span: TraceSpan, words: Sequence[str]) -> bool:
    text = f"{span.kind.value} {span.name} {span.status.value} {span.outcome} {span.error} {span.model}".lower()
    return all(word in text for word in words)


def note_left_out(trace: Trace) -> list[str]:
    """A line about spans above the limit; none without any."""
    return [f"{pluralize(trace.left_out, 'more span')} not shown."] if trace.left_out else []


def span_words(span: TraceSpan) -> str:
    """Kind and name; the kind alone where the name adds nothing."""
    return span.kind.value if span.name == span.kind.value else f"{span.kind.value} {clean_line(span.name)}"


def outcome(span: TraceSpan) -> str:
    return span.outcome.replace("_", " ")


def span_time(seconds: float) -> str:
    """A duration: 340 ms, 2.4 s, 1 m 12 s."""
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    return f"{seconds:.1f} s" if seconds < 60 else clock(seconds)


def span_tokens(span: TraceSpan) -> str:
    """Tokens read and written; empty for a tool."""
    if span.usage is None:
        return ""
    sign = "~" if span.estimated else ""
    return f"{sign}{tokens(input_tokens(span))}→{tokens(span.usage.output_tokens)}"


def span_cost(span: TraceSpan) -> str:
    """The cost; `~` where it is of estimated tokens."""
    words = money(span.cost_usd)
    return f"~{words}" if words and span.estimated else words


def input_tokens(span: TraceSpan) -> int:
    """Tokens that a model read, those of its cache too."""
    used = span.usage
    return used.input_tokens + used.cache_read_tokens + used.cache_creation_tokens if used is not None else 0


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
