"""Traces of runs as values: spans, trees and summaries, and the batches that are exported."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from engine.machine.messages import Usage


class SpanKind(StrEnum):
    """Kinds of spans."""

    AGENT = "agent"
    """A run: of the conversation, or of a sub-agent."""
    LLM = "llm"
    TOOL = "tool"
    ASIDE = "aside"
    """A model call beside runs, such as for a title: no part of the run's sums."""


class SpanStatus(StrEnum):
    """Outcomes of a span."""

    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    RUNNING = "running"


class TraceSpan(Struct, frozen=True):
    """One row of the tree."""

    id: str
    parent_id: str
    """Empty for the root."""
    depth: int
    kind: SpanKind
    name: str
    status: SpanStatus
    outcome: str
    """The stored word for the end, such as `timeout` or `interrupted`."""
    conversation_id: str
    run_id: str
    started_at: float
    seconds: float
    """Seconds until its end; until now while it runs."""
    usage: Usage | None = None
    """None for tools. An agent has the sum of its own run, without its sub-agents."""
    cost_usd: float | None = 0.0
    """None where a price is unknown."""
    estimated: bool = False
    provider: str = ""
    model: str = ""
    iteration: int = 0
    attempt: int = 0
    error: str = ""
    output: str = ""
    """Beginning of the answer or the output."""
    tool_use_id: str = ""
    message_seq: int = 0
    """The message of its conversation that it made or belongs to; 0 for none."""
    purpose: str = ""
    """The purpose of a model call."""


class Trace(Struct, frozen=True):
    """A run and all below it, each parent before its children, those by their start."""

    spans: tuple[TraceSpan, ...]
    """The root is the first."""
    left_out: int = 0
    """Spans above the limit."""

    @property
    def root(self) -> TraceSpan:
        """The run itself."""
        return self.spans[0]


class TraceSummary(Struct, frozen=True):
    """One run in a list of traces."""

    run_id: str
    prompt: str
    """The beginning of the message that began it."""
    status: SpanStatus
    outcome: str
    started_at: float
    seconds: float
    llm_calls: int
    tool_calls: int
    errors: int
    """Calls that failed."""
    usage: Usage
    cost_usd: float | None
    estimated: bool


class SpanContent(Struct, frozen=True):
    """Stored input and output of a span, each cut at 50,000 characters."""

    input: str
    """Empty for a model call unless it was recorded while verbose (SPEC CLAW-81)."""
    output: str


class ExportSpan(Struct, frozen=True):
    """One ended span. Keys name stored rows, so the same span has the same ids in every process and after a restart."""

    span: TraceSpan
    trace_key: str
    """Id of the run at the top of the tree; of a call beside runs its own."""
    key: str
    parent_key: str
    """Empty for the top of a tree."""
    agent_name: str = ""
    input: str = ""
    """Beginning of a prompt or of a call's input: content, like `span.output` and `span.error` of tools."""


class RejectedSpans(Struct, frozen=True):
    """Spans of a batch that the collector will never take."""

    count: int = 0
    why: str = ""
    """Words of the collector, cleaned and cut."""


class TraceBatch(Struct, frozen=True):
    """Spans that are sent together, and the place in the queue that is reached with them."""

    spans: tuple[ExportSpan, ...]
    done: int
    """Number of the last queue entry that is complete."""
    partial: int = 0
    """Number of the entry whose spans continue in the next batch; 0 for none."""
    sent: int = -1
    """Place of its last span."""
