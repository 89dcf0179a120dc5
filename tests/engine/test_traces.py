"""The trace of a run: tree, figures, ends on every way out, previews, and a bounded read (SPEC CLAW-80, CLAW-81)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.executor.engine_settings import EngineSettings
from engine.records.traces import SpanKind, SpanStatus, Trace, TraceSpan
from engine.store.opening import open_for_reading
from engine.store.traces import read_trace
from tests.engine.agents.test_spawning import DONE, spawns, submits
from tests.engine.test_restart import killed_at, reopened
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.scripted_provider import Fail, Hang, Reply, ScriptedCall, Text
from tests.support.storage import query

CALLS = Reply((ScriptedCall("bash", '{"command": "make"}', "call-1"),))


async def newest(harness: EngineHarness, conversation_id: str) -> Trace:
    library = harness.store.library.traces
    trace = await library.of_run((await library.of_conversation(conversation_id))[0].run_id)
    assert trace is not None
    return trace


def shape(trace: Trace) -> list[tuple[int, str, str, str]]:
    return [(one.depth, one.kind.value, one.name, one.status.value) for one in trace.spans]


async def test_a_run_is_the_root_of_its_calls_in_the_order_of_their_start(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, CALLS, Reply((Text("built"),))) as harness:
        conversation = await harness.run("go")
        trace = await newest(harness, conversation.id)
        assert shape(trace) == [
            (0, "agent", "agent", "ok"),
            (1, "llm", "main", "ok"),
            (1, "tool", "bash", "ok"),
            (1, "llm", "main", "ok"),
        ]
        root, first, tool, last = trace.spans
        assert (tool.output, last.output) == ("ran make", "built")
        assert (tool.tool_use_id, tool.message_seq, first.message_seq, root.message_seq) == ("call-1", 2, 2, 1)
        seen = await harness.store.library.traces.content(tool)
        assert (seen.input, seen.output) == ('{"command": "make"}', "ran make")


async def test_tokens_and_cost_are_the_sums_of_the_model_calls(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, CALLS, Reply((Text("built"),))) as harness:
        conversation = await harness.run("go")
        trace = await newest(harness, conversation.id)
        ((tokens_in, tokens_out, cost),) = query(
            harness.store.path, "SELECT sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM model_calls"
        )
        root = trace.root
        assert root.usage is not None
        assert (root.usage.input_tokens, root.usage.output_tokens, root.cost_usd) == (tokens_in, tokens_out, cost)
        llm = [one for one in trace.spans if one.kind is SpanKind.LLM]
        ids = {row[0] for row in query(harness.store.path, "SELECT id FROM model_calls")}
        assert {one.id for one in llm} == ids, "a model call's span has the id of its row"
        assert sum(one.usage.input_tokens for one in llm if one.usage) == tokens_in
        assert all(one.usage is None for one in trace.spans if one.kind is SpanKind.TOOL)


async def test_a_sub_agents_run_hangs_below_the_call_that_spawned_it(tmp_path: Path) -> None:
    replies = (spawns("TASK one", "TASK two"), submits("one", "first"), submits("two", "second"), DONE)
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await harness.run("begin")
        trace = await newest(harness, parent.id)
        assert [(one.depth, one.kind.value) for one in trace.spans] == [
            (0, "agent"),
            (1, "llm"),
            (1, "tool"),
            *[(2, "agent"), (3, "llm"), (3, "tool")] * 2,
            (1, "llm"),
        ]
        spawn = trace.spans[2]
        agents = [one for one in trace.spans if one.kind is SpanKind.AGENT][1:]
        assert spawn.name == "spawn_agents"
        assert {one.parent_id for one in agents} == {spawn.id}
        assert trace.root.usage is not None
        assert trace.root.usage.input_tokens == 200, "a sub-agent's tokens are its own"


@pytest.mark.parametrize("at", ["model", "tool"])
async def test_a_cancel_ends_the_trace_in_its_own_move(tmp_path: Path, at: str) -> None:
    tool = StubTool()
    tool.release = asyncio.Event()
    reply = Reply((Text("x"), Hang())) if at == "model" else CALLS
    async with engine_harness(tmp_path, reply, tool=tool) as harness:
        conversation = await harness.start("go")
        await until(lambda: tool.started.is_set() if at == "tool" else "x" in str(harness.updates))
        live = await newest(harness, conversation.id)
        assert live.root.status is SpanStatus.RUNNING
        assert shape(live)[-1] == ((1, "tool", "bash", "running") if at == "tool" else (1, "llm", "main", "running"))
        conversation.cancel()
        await conversation.wait_idle()
        trace = await newest(harness, conversation.id)
        assert (trace.root.status, trace.root.outcome) == (SpanStatus.CANCELLED, "cancelled")
        assert trace.spans[-1].status is SpanStatus.CANCELLED
        assert query(harness.store.path, "SELECT status FROM traces") == [("cancelled",)]


async def test_a_failed_call_and_its_retry_are_both_there(tmp_path: Path) -> None:
    replies = (Reply((Fail("busy", retryable=True),)), Reply((Text("done"),)))
    async with engine_harness(tmp_path, *replies) as harness:
        conversation = await harness.run("go")
        found = [(one.status.value, one.error, one.attempt) for one in (await newest(harness, conversation.id)).spans]
        assert found == [("ok", "", 0), ("error", "server", 0), ("ok", "", 1)]


@pytest.mark.parametrize("stage", ["streaming", "first tool", "second tool", "question"])
async def test_recovery_writes_the_ends_of_what_a_crash_cut_off(tmp_path: Path, stage: str) -> None:
    await killed_at(tmp_path, stage)
    async with engine_harness(tmp_path) as harness:
        conversation = await reopened(harness)
        trace = await newest(harness, conversation.id)
        assert SpanStatus.RUNNING not in {one.status for one in trace.spans}
        assert (trace.root.status, trace.root.outcome) == (SpanStatus.ERROR, "interrupted")
        tools = [one for one in trace.spans if one.kind is SpanKind.TOOL]
        expected = {
            "streaming": [],
            "first tool": ["interrupted"] * 2,
            "second tool": ["success", "interrupted"],
            "question": ["interrupted"] * 2,
        }
        assert [one.outcome for one in tools] == expected[stage]
        assert trace.root.seconds < 60, "the time until the restart is no part of the run"


async def test_calls_beside_runs_are_asides_and_no_part_of_the_sums(tmp_path: Path) -> None:
    replies = (Reply((Text("built"),)), Reply((Text("A title"),)))
    async with engine_harness(tmp_path, *replies, settings=EngineSettings(auto_title=True)) as harness:
        conversation = await harness.run("please build everything there is")
        await until(lambda: query(harness.store.path, "SELECT 1 FROM model_calls WHERE run_id IS NULL"))
        trace = await newest(harness, conversation.id)
        assert shape(trace)[-1] == (1, "aside", "title", "ok")
        assert trace.root.usage is not None
        assert trace.root.usage.input_tokens == 100


@pytest.mark.parametrize("verbose", [False, True])
async def test_inputs_are_kept_only_when_verbose_and_cut(tmp_path: Path, verbose: bool) -> None:
    call = Reply((ScriptedCall("bash", json.dumps({"command": "x" * 60_000})),))
    settings = EngineSettings(trace_verbose=verbose)
    async with engine_harness(tmp_path, call, Reply((Text("y" * 700),)), settings=settings) as harness:
        await harness.run("go")
        sizes = query(
            harness.store.path,
            "SELECT kind, length(input_preview), length(output_preview) FROM spans ORDER BY started_at",
        )[1:]
        size = 50_000 if verbose else 0
        assert sizes == [("tool", size, 500), ("llm", size, 500)]
        if verbose:
            ((kept,),) = query(harness.store.path, "SELECT input_preview FROM spans ORDER BY started_at LIMIT 1")
            assert str(kept).startswith('{"model":"main","system":[')


async def test_a_copy_has_no_traces_but_those_of_its_own_runs(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, CALLS, Reply((Text("built"),)), Reply((Text("more"),))) as harness:
        conversation = await harness.run("go")
        copy = await harness.engine.fork(conversation.id)
        assert await harness.store.library.traces.of_conversation(copy.id) == []
        await run_turn(copy, "on")
        assert [one.kind.value for one in (await newest(harness, copy.id)).spans] == ["agent", "llm"]


def grow(path: Path, run_id: str, count: int) -> None:
    """Give a run this many spans of tool calls, each a second after the other."""
    connection = sqlite3.connect(path)
    connection.executemany(
        """INSERT INTO spans (id, trace_id, kind, name, iteration, status, started_at, duration_ms)
            VALUES (?, ?, 'tool', 'bash', 1, 'success', ?, 10)""",
        [(f"span-{number}", run_id, 4e9 + number) for number in range(count)],
    )
    connection.commit()
    connection.close()


def statements(path: Path, read: Callable[[sqlite3.Connection], Trace | None]) -> tuple[int, Trace]:
    connection = open_for_reading(path)
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    trace = read(connection)
    connection.close()
    assert trace is not None
    return len(seen), trace


async def test_a_long_run_is_read_in_as_many_queries_as_a_short_one_and_says_what_is_left_out(tmp_path: Path) -> None:
    replies = (spawns("TASK one", "TASK two"), submits("one", "first"), submits("two", "second"), DONE)
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await harness.run("begin")
        root: TraceSpan = (await newest(harness, parent.id)).root
    path = harness.store.path
    before, small = statements(path, lambda connection: read_trace(connection, root.id, 0.0))
    grow(path, root.id, 5_000)
    after, large = statements(path, lambda connection: read_trace(connection, root.id, 0.0))
    assert (before, small.left_out) == (after, 0)
    assert after == 5
    assert len(large.spans) == 2_000
    assert large.left_out == len(small.spans) + 5_000 - 2_000
    assert [one.kind for one in large.spans[:4]] == [one.kind for one in small.spans[:4]]


async def test_there_is_no_trace_of_an_unknown_run(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        assert await harness.store.library.traces.of_run("nothing") is None
        assert await harness.store.library.traces.of_conversation("nothing") == []
