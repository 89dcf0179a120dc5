"""A day of conversations by script: events, traces, statistics, board and export equal what the model counted.

`DAY_OF_USE=50` is a day of 50 conversations and 2,000 runs; without it a tenth of that is replayed.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.executor.engine_settings import EngineSettings
from engine.records.runs import CallGroup, Statistics, StatisticsGroup, StatisticsQuery
from engine.records.traces import SpanKind, SpanStatus, Trace
from phoenix_tui.telemetry.exporter import Collector, TraceExporter
from phoenix_tui.telemetry.otlp import encode_spans
from phoenix_tui.wiring.trace_export import CollectorClient
from tests.support.collector import collect
from tests.support.day_of_use import AGENT, CALLS, DAY, MODEL, DayModel, Kind, Talked, price, talk
from tests.support.engine import EngineHarness, engine_harness
from tests.support.storage import query

CONVERSATIONS = int(os.environ.get("DAY_OF_USE", "5"))
RUNS, FOLDERS, TRACKED = 40, 5, 5
SETTINGS = EngineSettings(auto_title=False, cheap_model=AGENT, turn_summaries=False, track_after=3600.0)
BEGIN = ("message.persisted", "task:started", "task:progress", "state.changed")
END = ("message.persisted", "task:completed", "context.usage", "state.changed")
CALL = ("message.persisted", "block.reply", "task:tool_call")
ROUND = ("task:tool_start", "context.usage", "task:progress", "state.changed", "task:tool_result")
NEXT = ("message.persisted", "task:progress", "state.changed")
STORIES = {
    Kind.ANSWERS: BEGIN + END,
    Kind.CALLS: BEGIN + CALL + ROUND + NEXT + END,
    Kind.CALLS_TWICE: BEGIN + CALL + CALL[-1:] + ROUND + ("task:tool_start", "task:tool_result") + NEXT + END,
    Kind.FAILS: (*BEGIN, "task:failed", "state.changed"),
    Kind.STOPS: (*BEGIN, "message.persisted", "task:cancelled", "state.changed"),
    Kind.REPEATS: (*BEGIN, "run.retrying", *END),
}
ENDS = {Kind.FAILS: SpanStatus.ERROR, Kind.STOPS: SpanStatus.CANCELLED}


@dataclass
class Day:
    """The talks of a day, and the engine that recorded them."""

    harness: EngineHarness
    model: DayModel
    talks: list[Talked]

    @property
    def runs(self) -> list[tuple[str, Kind]]:
        """Runs with their kinds."""
        return [
            (str(row[0]), kind)
            for one in self.talks
            for row, kind in zip(self.runs_of(one.conversation.id), one.kinds, strict=True)
        ]

    def runs_of(self, conversation_id: str) -> list[tuple[object, ...]]:
        """Ids of the runs of a conversation, oldest first."""
        found = "SELECT id FROM runs WHERE conversation_id = ? ORDER BY rowid"
        return query(self.harness.store.path, found, conversation_id)

    def count(self, *kinds: Kind) -> int:
        """Runs of these kinds."""
        return sum(kind in kinds for one in self.talks for kind in one.kinds)


@asynccontextmanager
async def a_day(home: Path, conversations: int = CONVERSATIONS) -> AsyncGenerator[Day]:
    model, folders = DayModel(), [home / f"project-{number}" for number in range(FOLDERS)]
    for folder in folders:
        folder.mkdir()
    async with engine_harness(home, providers=model, settings=SETTINGS) as harness:
        await harness.store.trace_queue.open()
        talks = await asyncio.gather(*[
            talk(harness, model, number, RUNS, folders[number % FOLDERS]) for number in range(conversations)
        ])
        yield Day(harness, model, talks)


async def test_a_day_of_use_is_recorded_as_the_model_counted_it(tmp_path: Path) -> None:
    async with a_day(tmp_path) as day:
        check_events(day)
        await check_traces(day)
        await check_statistics(day)
        await check_boards(day)
        await check_a_fork_adds_nothing(day)
        await check_export(day)


def check_events(day: Day) -> None:
    """Each run has the events of its kind, in their order, under numbers that rise."""
    rows = query(day.harness.store.path, "SELECT run_id, type, seq FROM events ORDER BY seq")
    assert [row[2] for row in rows] == list(range(1, len(rows) + 1))
    told = defaultdict[str, list[str]](list)
    for run_id, kind, _ in rows:
        told[str(run_id)].append(str(kind))
    for run_id, kind in day.runs:
        assert tuple(told[run_id]) == STORIES[kind], kind


async def check_traces(day: Day) -> None:
    """Each run is a tree with a span for each call; tokens and cost are the model's."""
    for number, one in enumerate(day.talks):
        traces = [
            await day.harness.store.library.traces.of_run(str(row)) for (row,) in day.runs_of(one.conversation.id)
        ]
        found = [trace for trace in traces if trace is not None]
        assert [shape(trace) for trace in found] == [expected_shape(kind) for kind in one.kinds]
        sums = [trace.root.usage for trace in found if trace.root.usage is not None]
        read = sum(used.context_tokens for used in sums)
        assert read == day.model.total(str(number)).context_tokens
        assert round(sum(trace.root.cost_usd or 0 for trace in found), 9) == round(
            price(day.model.total(str(number))), 9
        )


def shape(trace: Trace) -> tuple[SpanStatus, int, int, int]:
    """The end, the calls of a model that ended well and all of them, and the calls of tools."""
    llm = [span for span in trace.spans if span.kind is SpanKind.LLM]
    tools = sum(span.kind is SpanKind.TOOL for span in trace.spans)
    return trace.root.status, sum(span.status is SpanStatus.OK for span in llm), len(llm), tools


def expected_shape(kind: Kind) -> tuple[SpanStatus, int, int, int]:
    tools = CALLS.get(kind, 0)
    good = 0 if kind in ENDS else 2 if tools else 1
    asked = good + (kind in {Kind.FAILS, Kind.STOPS, Kind.REPEATS})
    return ENDS.get(kind, SpanStatus.OK), good, asked, tools


async def check_statistics(day: Day) -> None:
    """Every group sums up to what the model counted."""
    found = await statistics(day)
    assert total(found.total) == day.model.total().context_tokens
    by_conversation = {row.key: total(row) for row in found.groups[StatisticsGroup.CONVERSATION]}
    assert by_conversation == {
        one.conversation.id: day.model.total(str(number)).context_tokens for number, one in enumerate(day.talks)
    }
    folders = defaultdict[str, int](int)
    for one in day.talks:
        folders[str(one.conversation.record.cwd)] += by_conversation[one.conversation.id]
    assert {row.key: total(row) for row in found.groups[StatisticsGroup.FOLDER]} == folders
    assert {row.key: row.calls for row in found.groups[StatisticsGroup.MODEL]} == {MODEL: found.total.calls}
    assert found.total.cancelled == day.count(Kind.STOPS)
    assert found.total.failed == day.count(Kind.FAILS, Kind.REPEATS)
    assert found.total.calls - found.total.failed - found.total.cancelled == sum(day.model.calls.values())
    assert [(tool.name, tool.calls) for tool in found.tools] == [("bash", sum(one.tools for one in day.talks))]


async def statistics(day: Day) -> Statistics:
    groups = (StatisticsGroup.CONVERSATION, StatisticsGroup.FOLDER, StatisticsGroup.MODEL, StatisticsGroup.PURPOSE)
    return await day.harness.store.statistics.read(StatisticsQuery(groups, tools=True))


def total(row: CallGroup) -> int:
    used = row.totals
    return used.input_tokens + used.output_tokens + used.cache_creation_tokens + used.cache_read_tokens


async def check_boards(day: Day) -> None:
    """The task agent records each message of some conversations once, pass by pass; its tokens are counted apart."""
    for one in day.talks[:TRACKED]:
        api, name = day.harness.engine.tasks, one.conversation.id
        await api.set_tracking(name, on=True)
        query(
            day.harness.store.path,
            "UPDATE messages SET task_process_status = 'pending' WHERE conversation_id = ? AND role <> 'system'",
            name,
        )
        status = await api.flush(name)
        board = await api.board(name)
        linked = sorted(seq for task in board.tasks for seq in task.message_seqs)
        seqs = query(
            day.harness.store.path,
            "SELECT seq FROM messages WHERE conversation_id = ? AND role <> 'system' ORDER BY seq",
            name,
        )
        assert linked == [seq for (seq,) in seqs]
        assert (status.success, status.pending, status.failed) == (len(linked), 0, 0)
        assert [task.order for task in board.tasks] == list(range(1, -(-len(linked) // 32) + 1))
    purposes = {row.key: total(row) for row in (await statistics(day)).groups[StatisticsGroup.PURPOSE]}
    talked = [str(number) for number in range(len(day.talks))]
    assert purposes == {
        "reply": day.model.total(*talked).context_tokens,
        "tracking": day.model.total(AGENT).context_tokens,
    }


async def check_a_fork_adds_nothing(day: Day) -> None:
    """Copied runs count once."""
    before = await statistics(day)
    await day.harness.engine.fork(day.talks[0].conversation.id)
    assert (await statistics(day)).total == before.total


async def check_export(day: Day) -> None:
    """The collector receives each span once: runs, calls of models and calls of tools."""
    async with collect() as collector:
        client = CollectorClient(Collector(f"{collector.url}/v1/traces", {}, content=False))
        exporter = TraceExporter(
            day.harness.store.trace_queue, client, lambda batch: encode_spans(batch.spans, content=False, version="1")
        )
        while await exporter.step() == 0.0:
            pass
        await exporter.close()
        ((calls, tools),) = query(
            day.harness.store.path, "SELECT (SELECT count(*) FROM model_calls), (SELECT count(*) FROM tool_calls)"
        )
        assert isinstance(calls, int) and isinstance(tools, int)
        assert collector.twice == []
        assert len(collector.spans) == len(day.runs) + calls + sum(one.tools for one in day.talks)


def test_the_day_has_every_kind_of_run() -> None:
    assert set(DAY) == set(Kind) == set(STORIES)
