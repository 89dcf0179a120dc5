"""Traces over the fake engine: a test sets the trees and what their spans hold."""

from __future__ import annotations

from collections.abc import Sequence

from engine.records.traces import SpanContent, Trace, TraceSpan, TraceSummary


class FakeTraces:
    """Answers with what a test has set."""

    def __init__(self) -> None:
        self.trees: dict[str, Trace] = {}
        self.summaries: list[TraceSummary] = []
        self.contents: dict[str, SpanContent] = {}

    async def of_run(self, run_id: str) -> Trace | None:
        return self.trees.get(run_id)

    async def of_conversation(self, conversation_id: str, limit: int = 200) -> Sequence[TraceSummary]:
        return self.summaries[:limit]

    async def content(self, span: TraceSpan) -> SpanContent:
        return self.contents.get(span.id, SpanContent("", span.output))
