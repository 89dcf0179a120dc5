"""Esc, x and closing with agents whose commands run: theirs are gone, everybody else's stay (SPEC BED-005, STM-05).

How fast is measured by `python -m tests.benchmarks agents esc-command`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from engine.agents.manager import SubAgents
from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.machine.states import AwaitingSubagents, Completed, Failed, Idle
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.fates import unanswered
from tests.support.processes import Watch, start_plain, watching
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text
from tests.support.tool_bench import NoJobs
from tests.support.waiting import poll
from tools.bash import Bash

EACH = 4
"""Processes of one command."""


def runs(watch: Watch, when: str) -> Reply:
    script = f"export WATCHED={watch.mark}; sleep 60 & setsid sleep 60 & sleep 60; :"
    return Reply((ScriptedCall("bash", json.dumps({"command": script, "timeout": 60})),), when=when)


def spawns(when: str, *tasks: str) -> Reply:
    return Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": task} for task in tasks]})),), when=when)


@asynccontextmanager
async def real_commands(home: Path, *replies: Reply) -> AsyncIterator[EngineHarness]:
    processes = await start_plain()
    bash: Any = Bash(NoJobs(processes.runner), home / "spill")
    (home / "spill").mkdir()
    try:
        async with engine_harness(home, *replies, tool=bash, settings=EngineSettings(max_agents=6)) as harness:
            yield harness
    finally:
        await processes.close()


async def working(harness: EngineHarness, parent: Conversation) -> SubAgents:
    sub_agents = harness.engine.sub_agents
    assert sub_agents is not None
    await until(lambda: isinstance(parent.state, AwaitingSubagents))
    return sub_agents


async def test_esc_ends_every_process_of_its_agents_and_of_no_others(tmp_path: Path) -> None:
    with watching() as mine, watching() as others:
        replies = (
            spawns("begin mine", "MINE 1", "MINE 2", "MINE 3"),
            spawns("begin others", "OTHERS 1"),
            *(runs(mine, f"MINE {n}") for n in (1, 2, 3)),
            runs(others, "OTHERS 1"),
        )
        async with real_commands(tmp_path, *replies) as harness:
            parent, other = await harness.conversation(), await harness.conversation()
            await parent.say("begin mine")
            await other.say("begin others")
            assert await poll(lambda: len(mine.alive()) >= 3 * EACH and len(others.alive()) >= EACH)
            sub_agents = await working(harness, parent)
            parent.cancel()
            assert isinstance(await parent.wait_idle(), Idle)
            await sub_agents.wait_finished(parent.id)
            assert await poll(lambda: not mine.alive())
            assert len(others.alive()) >= EACH
            assert isinstance(other.state, AwaitingSubagents)
            rows = await harness.store.agents.rows(parent.id)
            assert [row.outcome and row.outcome.reason for row in rows] == ["cancelled"] * 3
            assert unanswered(await harness.store.messages(parent.id)) == []
        assert others.alive() == set(), "closing ends the rest"


async def test_x_on_one_ends_that_one_alone(tmp_path: Path) -> None:
    with watching() as one, watching() as two:
        replies = (spawns("begin", "TASK 1", "TASK 2"), runs(one, "TASK 1"), runs(two, "TASK 2"))
        async with real_commands(tmp_path, *replies) as harness:
            parent = await harness.conversation()
            await parent.say("begin")
            assert await poll(lambda: len(one.alive()) >= EACH and len(two.alive()) >= EACH)
            sub_agents = await working(harness, parent)
            first, second = [view.id for view in sub_agents.views(parent.id)]
            sub_agents.stop((first,))
            assert await poll(lambda: not one.alive())
            await until(lambda: isinstance(parent.state, AwaitingSubagents) and parent.state.pending == (second,))
            assert len(two.alive()) >= EACH
            assert sub_agents.at_work(parent.id) == 1


async def test_closing_with_agents_at_work_leaves_nothing_and_they_have_ended(tmp_path: Path) -> None:
    with watching() as watch:
        hangs = Reply((Text("half"), Hang()), when="TASK 2")
        replies = (spawns("begin", "TASK 1", "TASK 2", "TASK 3"), runs(watch, "TASK 1"), hangs, runs(watch, "TASK 3"))
        async with real_commands(tmp_path, *replies) as harness:
            parent = await harness.conversation()
            await parent.say("begin")
            assert await poll(lambda: len(watch.alive()) >= 2 * EACH)
            await working(harness, parent)
            await harness.engine.close()
            assert watch.alive() == set()
        async with engine_harness(tmp_path) as harness:
            assert await harness.store.recover_all() == [], "they had ended by then"
            rows = await harness.store.agents.rows(parent.id)
            assert [type(row.state) for row in rows] == [Failed, Failed, Failed]


async def test_one_that_waits_for_its_turn_ends_with_its_parent(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when="TASK", always=True)
    settings = EngineSettings(max_agents=1)
    async with engine_harness(tmp_path, spawns("begin", "TASK 1", "TASK 2"), hangs, settings=settings) as harness:
        parent = await harness.conversation()
        await parent.say("begin")
        await working(harness, parent)
        await harness.engine.forget(parent.id)
        assert harness.engine.live() == ()
        rows = await harness.store.agents.rows(parent.id)
        assert [row.outcome and row.outcome.reason for row in rows] == ["cancelled", "cancelled"]


async def test_an_ended_one_is_closed_when_nobody_looks_and_goes_on_when_told(tmp_path: Path) -> None:
    replies = (
        spawns("begin", "TASK 1"),
        Reply((ScriptedCall("submit_result", '{"result": "more"}'),), when="dig deeper"),
        Reply((ScriptedCall("submit_result", '{"result": "first"}'),), when="TASK 1"),
        Reply((Text("Done."),), when="Sub-agent results"),
        Reply((Text("More, then."),), when="[SYSTEM]"),
    )
    async with engine_harness(tmp_path, *replies) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        harness.engine.resting.agent_patience = 0.0
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
        await until(lambda: harness.engine.live() == (parent,))
        (view,) = sub_agents.views(parent.id)
        looked_at = await harness.engine.open(view.id)
        leave = await looked_at.subscribe(lambda _update: None)
        await sub_agents.hint(view.id, "dig deeper")
        await sub_agents.wait_finished(parent.id)
        await parent.wait_idle()
        assert looked_at in harness.engine.live(), "somebody looks at it"
        assert isinstance(looked_at.state, Completed)
        leave()
        await until(lambda: harness.engine.live() == (parent,))
        (row,) = await harness.store.agents.rows(parent.id)
        assert row.outcome is not None
        assert row.outcome.text == "more"


async def test_a_hint_that_comes_too_late_is_read_all_the_same(tmp_path: Path) -> None:
    gate = asyncio.Event()
    replies = (
        spawns("begin", "TASK 1"),
        Reply((ScriptedCall("submit_result", '{"result": "with the hint"}'),), when="look at b too"),
        Reply((ScriptedCall("submit_result", '{"result": "first"}'),), when="TASK 1"),
        Reply((Text("Done."),), when="Sub-agent results"),
        Reply((Text("Now I know."),), when="with the hint"),
    )
    async with engine_harness(tmp_path, *replies) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent = await harness.conversation()
        commit = harness.store.commit

        async def slowly(move: Any) -> Any:
            if isinstance(move.state, Completed) and not gate.is_set():
                gate.set()
                await sub_agents.hint(move.conversation_id, "look at b too")  # its text is complete
            return await commit(move)

        harness.store.commit = slowly  # type: ignore[assignment, method-assign] # a hint right before the end
        await parent.say("begin")
        await gate.wait()
        await sub_agents.wait_finished(parent.id)
        await parent.wait_idle()
        await until(partial(all_told, harness))
        await parent.wait_idle()
        (row,) = await harness.store.agents.rows(parent.id)
        assert row.outcome is not None
        assert row.outcome.text == "with the hint"


def all_told(harness: EngineHarness) -> bool:
    return any("has completed successfully" in str(one.messages) for one in harness.provider.requests)
