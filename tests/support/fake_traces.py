"""Traces over the fake engine: a test sets the trees and what their spans hold."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from engine.machine.messages import Usage
from engine.records.traces import SpanContent, SpanKind, SpanStatus, Trace, TraceSpan, TraceSummary

BEGAN = 1_700_000_000.0


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

    async def run_named(self, reference: str) -> str:
        return reference if reference in self.trees else ""

    async def content(self, span: TraceSpan) -> SpanContent:
        return self.contents.get(span.id, SpanContent("", span.output))


def span(
    name: str, kind: SpanKind, start: float, seconds: float, *, parent: str = "run-2", depth: int = 1, seq: int = 0
) -> TraceSpan:
    """A span that ended well; a model call has tokens and a price."""
    is_llm = kind is SpanKind.LLM
    return TraceSpan(
        id=f"{name}-{start:g}",
        parent_id=parent,
        depth=depth,
        kind=kind,
        name=name,
        status=SpanStatus.OK,
        outcome="ok" if is_llm else "success",
        conversation_id="",
        run_id="run-2",
        started_at=BEGAN + start,
        seconds=seconds,
        usage=Usage(1_200, 340, 0, 8_000) if is_llm else None,
        cost_usd=0.021 if is_llm else 0.0,
        provider="anthropic" if is_llm else "",
        model=name if is_llm else "",
        message_seq=seq,
    )


def some_traces(conversation_id: str, *, running: bool = False) -> FakeTraces:
    """Two runs; the newer one has a failed command, a sub-agent and more spans than are shown."""
    root = replace(
        span("run-2", SpanKind.AGENT, 0, 42.4, parent="", depth=0, seq=1),
        id="run-2",
        name="agent",
        usage=Usage(3_600, 1_020, 0, 24_000),
        cost_usd=0.063,
    )
    if running:
        root = replace(root, status=SpanStatus.RUNNING, outcome="running")
    failed = replace(
        span("bash", SpanKind.TOOL, 3.1, 12.5, seq=2),
        status=SpanStatus.ERROR,
        outcome="error",
        error="exit code 2: no rule to make target",
        output="exit code 2: no rule to make target",
        tool_use_id="call-1",
    )
    spawn = span("spawn_agents", SpanKind.TOOL, 18, 20.0, seq=2)
    helper = span("explore", SpanKind.AGENT, 18.2, 19.5, parent=spawn.id, depth=2)
    helper = replace(helper, run_id="run-3", usage=Usage(900, 100), cost_usd=0.004)
    inner = replace(span("haiku", SpanKind.LLM, 18.4, 9.0, parent=helper.id, depth=3), run_id="run-3")
    aside = replace(span("title", SpanKind.LLM, 43, 1.1), kind=SpanKind.ASIDE, run_id="", cost_usd=None)
    spans = [
        root,
        span("sonnet", SpanKind.LLM, 0.2, 2.8, seq=2),
        failed,
        span("sonnet", SpanKind.LLM, 15.8, 2.1, seq=2),
        spawn,
        helper,
        inner,
        replace(span("sonnet", SpanKind.LLM, 38.5, 3.9, seq=2), estimated=True),
        aside,
    ]
    found = FakeTraces()
    found.trees["run-2"] = Trace(tuple(replace(one, conversation_id=conversation_id) for one in spans), left_out=12)
    old = replace(root, id="run-1", run_id="run-1", conversation_id=conversation_id, seconds=3.0)
    found.trees["run-1"] = Trace((old,))
    usage = Usage(3_600, 1_020, 0, 24_000)
    found.summaries = [
        TraceSummary(
            "run-2", "why does make fail?", root.status, root.outcome, BEGAN, 42.4, 3, 2, 1, usage, 0.063, False
        ),
        TraceSummary("run-1", "hello", SpanStatus.OK, "success", BEGAN - 60, 3.0, 1, 0, 0, usage, 0.01, False),
    ]
    found.contents[failed.id] = SpanContent('{"command": "make all"}', "exit code 2: no rule to make target 'all'")
    return found
