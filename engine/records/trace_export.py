"""Spans for a collector, with the keys that their ids are derived from."""

from __future__ import annotations

from msgspec import Struct

from engine.records.traces import TraceSpan


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
