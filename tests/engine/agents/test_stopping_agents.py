"""Esc, x and closing with agents whose commands run (SPEC BED-005, STM-05), and an end and Esc in the same moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.agents.manager import SubAgents
from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import Origin
from engine.machine.states import AwaitingSubagents, Completed, Errored, Failed, Idle
from engine.ports import Committed, Move, StorageError, SuppressWakes
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.fates import unanswered, words
from tests.support.gates import Gates
from tests.support.processes import Watch, start_plain, watching
from tests.support.scripted_provider import Hang, Pause, Reply, Script, ScriptedCall, ScriptedProvider, Text
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
            parent = await harness.start("begin")
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
            parent = await harness.start("begin")
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
        parent = await harness.start("begin")
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
        parent = await harness.run("begin")
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


ONE, TWO, LONG = 1.0, 2.0, 3.0
"""The pauses of the two sub-agents and of their parent's long answer."""


def submits(text: str) -> ScriptedCall:
    return ScriptedCall("submit_result", json.dumps({"result": text}))


def starts(number: int) -> ScriptedCall:
    return ScriptedCall("spawn_task", json.dumps({"task_description": "look", "initial_prompt": f"TASK {number}"}))


REPLIES = (
    Reply((Text("I see."),), when="[SYSTEM]", always=True),
    Reply(
        (
            Pause(LONG),
            Text("Long."),
        ),
        when="work long",
    ),
    Reply((Text("Started."),), when=" started", always=True),
    Reply((submits("more"),), when="dig deeper"),
    Reply((Pause(ONE), submits("first")), when="TASK 1"),
    Reply((Pause(TWO), submits("second")), when="TASK 2"),
    Reply((Text("Hello."),), when="nothing yet"),
    Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "TASK 1"}]}'),), when="begin together"),
    Reply((starts(1),), when="begin one"),
    Reply((starts(1), starts(2)), when="begin two"),
)
Commit = Callable[[Move], Awaitable[Committed]]
Storing = Callable[[Move, Commit], Awaitable[Committed]]


def ending(told: str) -> str:
    """The result in a completion message, or why there is none."""
    first, *_, last = told.splitlines()
    return last if "successfully" in first else first.partition("has failed: ")[2]


class Meeting:
    """An idle parent whose one sub-agent is about to submit."""

    def __init__(self, harness: EngineHarness, parent: Conversation, sub_agents: SubAgents, gates: Gates) -> None:
        self.harness, self.parent, self.sub_agents, self.gates = harness, parent, sub_agents, gates
        self.hushed = False

    async def esc(self) -> None:
        """Press it, and wait until what it means is stored."""
        self.parent.cancel()
        await until(lambda: self.hushed)

    async def come_to_rest(self) -> None:
        await self.sub_agents.wait_finished(self.parent.id)
        await self.parent.wait_idle()

    async def given(self) -> list[str]:
        """Outcomes and texts of the ends in the parent."""
        messages = await self.harness.store.messages(self.parent.id)
        return [ending(words(one.blocks)) for one in messages if one.origin is Origin.COMPLETION]

    async def waits_for_the_user(self, *results: str) -> None:
        """Check that no turn has begun, and that the next one gets every result once."""
        await self.come_to_rest()
        assert (isinstance(self.parent.state, Idle), self.sub_agents.results(self.parent.id)) == (True, len(results))
        assert await self.given() == []
        await self.parent.say("and now")
        await self.come_to_rest()
        assert await self.given() == list(results)


@asynccontextmanager
async def meeting(home: Path, begin: str = "begin one") -> AsyncGenerator[Meeting]:
    gates = Gates()
    async with engine_harness(home, provider=ScriptedProvider({"main": Script(REPLIES)}, gates.wait)) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent = await harness.run(begin)
        here = Meeting(harness, parent, sub_agents, gates)
        commit = harness.store.commit

        async def watched(move: Move) -> Committed:
            committed = await commit(move)
            here.hushed |= any(isinstance(write, SuppressWakes) for write in move.writes)
            return committed

        harness.store.commit = watched  # type: ignore[assignment, method-assign] # when Esc is stored
        yield here


def around_the_end(here: Meeting, patch: pytest.MonkeyPatch, act: Storing) -> None:
    """Let `act` store the end of the sub-agent."""
    commit = here.harness.store.commit

    async def stored(move: Move) -> Committed:
        return await (act(move, commit) if isinstance(move.state, Completed) else commit(move))

    patch.setattr(here.harness.store, "commit", stored)


async def test_esc_before_an_end_is_stored_lets_it_wait_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with meeting(tmp_path) as here:

        async def esc_first(move: Move, commit: Commit) -> Committed:
            await here.esc()
            return await commit(move)

        around_the_end(here, monkeypatch, esc_first)
        here.gates[ONE].set()
        await here.waits_for_the_user("first")


async def test_esc_while_an_end_is_stored_lets_it_wait_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with meeting(tmp_path) as here:

        async def esc_after(move: Move, commit: Commit) -> Committed:
            committed = await commit(move)
            await here.esc()
            return committed

        around_the_end(here, monkeypatch, esc_after)
        here.gates[ONE].set()
        await here.waits_for_the_user("first")


@pytest.mark.parametrize(
    ("place", "stored"),
    [("row", True), ("row", False), ("waiting", True), ("waiting", False), ("wakes", False)],
    ids=lambda value: {True: "stored", False: "not stored yet"}.get(value, value),
)
async def test_esc_while_an_end_is_told_lets_it_wait_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, *, stored: bool
) -> None:
    async with meeting(tmp_path) as here:
        read, pressed = getattr(here.harness.store.agents, place), list[str]()

        async def interrupted(conversation_id: str) -> Any:
            found = await read(conversation_id)
            if not pressed:
                pressed.append(place)
                here.parent.cancel()
                if stored:  # not in a move of the parent itself, which must not wait
                    await until(lambda: here.hushed)
            return found

        monkeypatch.setattr(here.harness.store.agents, place, interrupted)
        here.gates[ONE].set()
        await until(lambda: pressed)
        await here.waits_for_the_user("first")
        assert here.hushed


async def test_esc_while_an_end_that_failed_to_be_stored_is_mended_lets_it_wait_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with meeting(tmp_path) as here:

        async def full(move: Move, commit: Commit) -> Committed:
            raise StorageError("The disk is full.")

        mend = here.harness.store.mend

        async def esc_first(conversation_id: str) -> None:
            await here.esc()
            await mend(conversation_id)

        around_the_end(here, monkeypatch, full)
        monkeypatch.setattr(here.harness.store, "mend", esc_first)
        here.gates[ONE].set()
        await here.come_to_rest()
        assert (isinstance(here.parent.state, Idle), here.sub_agents.results(here.parent.id)) == (True, 1)
        assert await here.given() == []


async def test_what_came_back_before_esc_is_not_begun_with_by_the_end_of_another(tmp_path: Path) -> None:
    async with meeting(tmp_path, "begin two") as here:
        await here.parent.say("work long")
        here.gates[ONE].set()
        await until(lambda: here.sub_agents.results(here.parent.id) == 1)
        await here.esc()
        await here.come_to_rest()
        await here.waits_for_the_user("first", "cancelled.")


async def test_a_result_that_is_told_too_late_for_its_stopped_call_is_given_with_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with meeting(tmp_path, "nothing yet") as here:
        await here.parent.say("begin together")
        await until(lambda: len(here.sub_agents.views(here.parent.id)) == 1)

        async def until_given_up(move: Move, commit: Commit) -> Committed:
            committed = await commit(move)
            here.parent.cancel()
            await until(lambda: isinstance(here.parent.state, Idle))
            return committed

        around_the_end(here, monkeypatch, until_given_up)
        here.gates[ONE].set()
        await here.waits_for_the_user("first")
        assert unanswered(await here.harness.store.messages(here.parent.id)) == []


async def test_an_end_that_began_a_turn_before_esc_stands_in_it(tmp_path: Path) -> None:
    async with meeting(tmp_path) as here:
        here.gates[ONE].set()
        await until(lambda: not isinstance(here.parent.state, Idle | Errored))
        here.parent.cancel()
        await here.come_to_rest()
        assert (await here.given(), here.sub_agents.results(here.parent.id)) == (["first"], 0)


async def test_one_that_is_told_to_go_on_after_esc_wakes_its_parent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with meeting(tmp_path) as here:

        async def esc_first(move: Move, commit: Commit) -> Committed:
            monkeypatch.undo()
            await here.esc()
            return await commit(move)

        around_the_end(here, monkeypatch, esc_first)
        here.gates[ONE].set()
        await here.come_to_rest()
        (view,) = here.sub_agents.views(here.parent.id)
        await here.sub_agents.hint(view.id, "dig deeper")
        await until(lambda: here.sub_agents.results(here.parent.id) == 0)
        await here.come_to_rest()
        assert await here.given() == ["first", "more"]
