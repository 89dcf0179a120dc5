"""A trace in words: time, tokens and cost of each span (SPEC CLAW-80); `trace_bars` draws the tree."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from engine.records.traces import SpanContent, SpanKind, Trace, TraceSpan, TraceSummary
from phoenix_tui.text.labels import clock, money, tokens
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
