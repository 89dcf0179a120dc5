"""Requests of another process to cancel a run: looked for only during runs, and done as Esc does (SPEC SDK-11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from engine.executor.requests import Accepted, Refused, RunCaps
from engine.machine.states import AwaitingSubagents, Idle, is_busy
from engine.records import QueuedMessage
from engine.store import Store, StorePaths, open_store
from tests.engine.test_event_log import HELLO, spawns
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text
from tests.support.storage import query

HANGS = Reply((Text("half"), Hang()))


@asynccontextmanager
async def other(harness: EngineHarness) -> AsyncIterator[Store]:
    """The store as another process opens it."""
    store = await open_store(StorePaths.under(harness.store.path.parent))
    try:
        yield store
    finally:
        await store.close()


def looks(harness: EngineHarness) -> bool:
    assert harness.engine.cancel_watcher is not None
    return harness.engine.cancel_watcher.looks


async def requested(harness: EngineHarness, conversation_id: str) -> str:
    """Ask for the cancel of the newest run, from outside; returns its id."""
    async with other(harness) as store:
        [newest, *_] = await store.runs.newest(conversation_id, 1)
        assert await store.runs.request_cancel(conversation_id, newest.record.id, 5.0)
    return newest.record.id


def requests(harness: EngineHarness) -> list[tuple[object, ...]]:
    return query(harness.store.path, "SELECT conversation_id, run_id FROM cancel_requests")


async def test_it_looks_while_a_run_is_under_way_and_never_between_runs(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        assert not looks(harness)
        await run_turn(conversation, "go")
        await until(lambda: not looks(harness))


async def test_a_request_stops_the_run_and_holds_the_queue_as_esc_does(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.start("go")
        await conversation.queue.add("later")
        run_id = await requested(harness, conversation.id)
        assert isinstance(await conversation.wait_idle(), Idle)
        assert conversation.queue.held
        assert [(type(one), one.id != "") for one in conversation.queue.waiting] == [(QueuedMessage, True)]
        [stored] = await harness.store.runs.newest(conversation.id, 9)
        assert (stored.record.id, stored.record.status) == (run_id, "cancelled")
        assert requests(harness) == []


async def test_a_request_reaches_a_tool_and_its_processes(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event())
    call = Reply((ScriptedCall("bash", '{"command": "one"}'),))
    async with engine_harness(tmp_path, call, tool=tool) as harness:
        conversation = await harness.start("go")
        await tool.started.wait()
        await requested(harness, conversation.id)
        await conversation.wait_idle()
        assert tool.stopped == 1


async def test_a_request_for_one_sub_agent_leaves_the_others_at_work(tmp_path: Path) -> None:
    hang = Reply((Hang(),), when="TASK", always=True)
    async with engine_harness(tmp_path, spawns("TASK one", "TASK two"), hang) as harness:
        parent = await harness.start("begin")
        await until(lambda: isinstance(parent.state, AwaitingSubagents) and len(harness.provider.requests) == 3)
        first, second = await harness.store.agents.rows(parent.id)
        await requested(harness, first.id)
        await until(lambda: isinstance(parent.state, AwaitingSubagents) and parent.state.pending == (second.id,))
        await requested(harness, parent.id)
        await parent.wait_idle()


async def test_a_run_that_has_ended_takes_no_request_and_an_old_one_never_stops_the_next(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, HANGS) as harness:
        conversation = await harness.run("go")
        [ended] = await harness.store.runs.newest(conversation.id, 9)
        async with other(harness) as store:
            assert not await store.runs.request_cancel(conversation.id, ended.record.id, 5.0)
            assert not await store.runs.request_cancel(conversation.id, "nothing", 5.0)
            assert not await store.runs.request_cancel("nothing", "", 5.0)
        assert requests(harness) == []
        query(harness.store.path, f"INSERT INTO cancel_requests VALUES ('{conversation.id}', '{ended.record.id}', 1.0)")
        await conversation.say("again")
        await until(lambda: not requests(harness))
        assert is_busy(conversation.state)
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)


async def test_two_callers_that_choose_one_id_get_one_run(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HELLO, HELLO) as harness:
        first, second = await harness.conversation(), await harness.conversation()
        caps = RunCaps(run_id="3f2b8c1e-9a47-4d0b-8c55-1e6f0a7d2b94")
        receipts = await asyncio.gather(first.say("go", caps=caps), second.say("go", caps=caps))
        assert [type(one) for one in receipts] == [Accepted, Refused]
        assert receipts[1] == Refused(f"There is already a run {caps.run_id}; give another id.")
        await first.wait_idle()


async def test_a_request_for_a_conversation_of_another_process_is_left_alone(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, HANGS) as harness:
        conversation = await harness.start("go")
        async with other(harness) as store:
            [run] = await store.runs.newest(conversation.id, 9)
            assert run.owner_pid is not None
            assert await store.runs.take_requests() == []
            assert await store.runs.request_cancel(conversation.id, run.record.id, 5.0)
            assert await store.runs.take_requests() == []
        await conversation.wait_idle()
