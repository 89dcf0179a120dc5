"""`phoenix trace`: the tree of one run."""

from __future__ import annotations

import sys

from engine.ports import Store
from engine.ports.traces import Traces
from engine.records.traces import Trace, TraceSpan
from phoenix_tui.cli.arguments import CommandArguments
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.finding import find_one
from phoenix_tui.cli.output import write_json, write_line
from phoenix_tui.cli.times import utc_time
from phoenix_tui.terminal.size import terminal_size
from phoenix_tui.text.trace_bars import trace_lines
from tools.contract import JsonObject

WIDTH = 120
"""Columns where stdout is no terminal, and the most on one."""
LEAST_WIDTH = 60


async def show_trace(store: Store, traces: Traces, arguments: CommandArguments) -> Exit:
    """Print the run that the reference names, or the newest one of the conversation it names.

    Raises:
        CommandError: it names neither, or the conversation has no run.
    """
    trace = await _found(store, traces, arguments.reference)
    if arguments.json:
        write_json(_object(trace))
        return Exit.OK
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    width = terminal_size()[0] if sys.stdout.isatty() else WIDTH
    for line in trace_lines(trace, min(max(width, LEAST_WIDTH), WIDTH), plain=encoding != "utf8"):
        write_line(line.rstrip())
    return Exit.OK


async def _found(store: Store, traces: Traces, reference: str) -> Trace:
    run_id = await traces.run_named(reference)
    if not run_id:
        summary = await find_one(store, reference, deleted=True, partly=True)
        runs = await traces.of_conversation(summary.id, 1)
        if not runs:
            raise CommandError("This conversation has no run with a trace yet.")
        run_id = runs[0].run_id
    trace = await traces.of_run(run_id)
    if trace is None:
        raise CommandError("This run was removed meanwhile.")
    return trace


def _object(trace: Trace) -> JsonObject:
    root = trace.root
    return {
        "run_id": root.run_id,
        "conversation_id": root.conversation_id,
        "status": root.outcome,
        "left_out": trace.left_out,
        "spans": [_span(span) for span in trace.spans],
    }


def _span(span: TraceSpan) -> JsonObject:
    used = span.usage
    return {
        "id": span.id,
        "parent_id": span.parent_id or None,
        "depth": span.depth,
        "kind": span.kind.value,
        "name": span.name,
        "status": span.status.value,
        "outcome": span.outcome,
        "conversation_id": span.conversation_id,
        "run_id": span.run_id or None,
        "started_at": utc_time(span.started_at),
        "duration_ms": round(span.seconds * 1000),
        "usage": None
        if used is None
        else {
            "input_tokens": used.input_tokens,
            "output_tokens": used.output_tokens,
            "cache_creation_input_tokens": used.cache_creation_tokens,
            "cache_read_input_tokens": used.cache_read_tokens,
        },
        "cost_usd": span.cost_usd,
        "estimated": span.estimated,
        "provider": span.provider,
        "model": span.model,
        "iteration": span.iteration,
        "attempt": span.attempt,
        "error": span.error,
        "output": span.output,
        "tool_use_id": span.tool_use_id,
        "message_seq": span.message_seq or None,
    }
