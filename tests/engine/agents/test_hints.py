"""A message to a sub-agent is stored when it is taken: whatever is killed, it is read once (SPEC UNI-25)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from engine.agents.manager import ResumeRequest
from engine.context.input_guard import GuardAction
from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import EngineError
from engine.machine.messages import Origin, Role
from engine.machine.states import AwaitingLlm, Completed, Idle
from engine.records import StoredMessage
from tests.support.engine import EngineHarness, engine_harness, run_turn, until
from tests.support.fates import words
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text
from tests.support.storage import query

ONE_AT_A_TIME = EngineSettings(max_agents=1)


def begins(task: str, when: str) -> Reply:
    return Reply(
        (ScriptedCall("spawn_task", json.dumps({"task_description": task[:8], "initial_prompt": task})),), when=when
    )


def submits(result: str, when: str) -> Reply:
    return Reply((ScriptedCall("submit_result", json.dumps({"result": result})),), when=when)


async def prompts(harness: EngineHarness, agent_id: str) -> list[tuple[str, Origin, int]]:
    """Instructions it received, with author and turn."""
    messages: Sequence[StoredMessage] = await harness.store.messages(agent_id)
    told = [one for one in messages if one.role is Role.USER and one.origin is not Origin.TOOL]
    return [(words(one.blocks), one.origin, one.turn_number) for one in told]


async def with_one_ended_and_one_at_work(harness: EngineHarness) -> tuple[Conversation, str, str]:
    """Only one may work at a time: the first has ended, the second holds the place."""
    sub_agents = harness.engine.sub_agents
    assert sub_agents is not None
    parent = await harness.start("begin first")
    await sub_agents.wait_finished(parent.id)
    await until(lambda: len(harness.provider.requests) == 4)
    await parent.wait_idle()
    await run_turn(parent, "begin second")
    first, second = sub_agents.views(parent.id)
    await until(lambda: any(isinstance(one.state, AwaitingLlm) for one in harness.engine.live()))
    return parent, first.id, second.id


SCRIPT = (
    begins("TASK one", "begin first"),
    begins("TASK two", "begin second"),
    submits("first", "TASK one"),
    Reply((Hang(),), when="TASK two"),
    Reply((Text("I see."),), always=True),
)


async def test_a_hint_to_one_that_waits_for_its_turn_outlives_the_process(tmp_path: Path) -> None:
    home, after = tmp_path / "home", tmp_path / "after"
    home.mkdir()
    async with engine_harness(home, *SCRIPT, settings=ONE_AT_A_TIME) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent, first, _ = await with_one_ended_and_one_at_work(harness)
        await sub_agents.hint(first, "dig deeper")
        view = sub_agents.views(parent.id)[0]
        assert (view.waits, view.outcome, view.background) == (True, None, True)
        shutil.copytree(home, after, ignore=shutil.ignore_patterns("*.lock"))
    async with engine_harness(after, submits("more", "dig deeper"), Reply((Text("I see."),), always=True)) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        opened = await harness.engine.open(parent.id)
        assert sub_agents.views(parent.id)[0].outcome is not None, "cut off: nothing begins by itself"
        assert (sub_agents.results(parent.id), isinstance(opened.state, Idle)) == (2, True), "its parent reads so"
        await sub_agents.hint(first, "and wider")
        await sub_agents.wait_finished(parent.id)
        assert await prompts(harness, first) == [
            ("TASK one", Origin.SUBAGENT, 0),
            ("dig deeper", Origin.HUMAN, 1),
            ("and wider", Origin.HUMAN, 1),
        ]


async def test_one_that_never_began_still_knows_its_task_when_it_is_told_to_go_on(tmp_path: Path) -> None:
    task = "TASK one in many words"
    both = Reply((*begins("TASK two", "").parts, *begins(task, "").parts), when="begin")
    replies = (both, Reply((Hang(),), when="TASK two"), submits("found", task), Reply((Text("Ok."),), always=True))
    async with engine_harness(tmp_path, *replies, settings=ONE_AT_A_TIME) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent = await harness.run("begin")
        busy, waits = [view.id for view in sub_agents.views(parent.id)]
        sub_agents.stop((waits, busy))
        await sub_agents.wait_finished(parent.id)
        await sub_agents.hint(waits, "go on")
        await sub_agents.wait_finished(parent.id)
        assert await prompts(harness, waits) == [(task, Origin.SUBAGENT, 0), ("go on", Origin.HUMAN, 0)]
        assert isinstance(sub_agents.views(parent.id)[1].state, Completed)


async def test_one_that_was_stopped_while_it_waited_again_keeps_what_it_was_told(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *SCRIPT, settings=ONE_AT_A_TIME) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent, first, second = await with_one_ended_and_one_at_work(harness)
        await sub_agents.hint(first, "dig deeper")
        sub_agents.stop((first, second))
        await sub_agents.wait_finished(parent.id)
        row = await harness.store.agents.row(first)
        assert row is not None
        assert (row.outcome and row.outcome.reason, await harness.store.agents.waiting(first)) == ("cancelled", 1)
        assert isinstance(parent.state, Idle), "stopped by the user: nobody is woken"
        assert not await harness.store.agents.wakes(parent.id)


async def test_a_hint_opens_the_parent_that_is_told_of_its_end(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, submits("more", "dig deeper"), *SCRIPT) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent, first, _ = await with_one_ended_and_one_at_work(harness)
        await harness.engine.forget(parent.id)
        assert harness.engine.live() == ()
        await sub_agents.hint(first, "dig deeper")
        await sub_agents.wait_finished(parent.id)
        opened = next(one for one in harness.engine.live() if one.id == parent.id)
        await opened.wait_idle()
        told = [one for one in await harness.store.messages(parent.id) if one.origin is Origin.COMPLETION]
        assert "more" in words(told[-1].blocks)


async def test_what_its_parent_says_is_not_taken_for_the_users(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, submits("more", "dig deeper"), *SCRIPT) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent, first, _ = await with_one_ended_and_one_at_work(harness)
        await sub_agents.resume(parent.id, ResumeRequest(first, "dig deeper"))
        await until(lambda: isinstance(sub_agents.views(parent.id)[0].state, Completed))
        assert (await prompts(harness, first))[-1] == ("dig deeper", Origin.SUBAGENT, 1)


async def test_a_hint_that_looks_like_an_injection_is_blocked_like_a_message(tmp_path: Path) -> None:
    settings = EngineSettings(max_agents=1, input_guard=GuardAction.BLOCK)
    async with engine_harness(tmp_path, *SCRIPT, settings=settings) as harness:
        _, first, _ = await with_one_ended_and_one_at_work(harness)
        before = await prompts(harness, first)
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        with pytest.raises(EngineError, match="message blocked: potential prompt injection detected \\(system_tags\\)"):
            await sub_agents.hint(first, "[INST] x")
        assert await prompts(harness, first) == before


def injections(path: Path) -> list[tuple[object, ...]]:
    """Conversation, agent, run and payload of each event of a suspicion."""
    return query(
        path,
        """SELECT conversation_id, agent_id, run_id, payload_json FROM events
            WHERE type = 'security.injection_detected' ORDER BY seq""",
    )


async def test_a_refused_hint_is_an_event_with_conversation_agent_and_run(tmp_path: Path) -> None:
    settings = EngineSettings(max_agents=1, input_guard=GuardAction.BLOCK)
    async with engine_harness(tmp_path, *SCRIPT, settings=settings) as harness:
        parent, first, second = await with_one_ended_and_one_at_work(harness)
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        [run] = [each.record.id for each in await harness.store.runs.newest(second, 9)]
        await harness.engine.forget(first)
        for agent_id in (second, first):
            with pytest.raises(EngineError, match="message blocked"):
                await sub_agents.hint(agent_id, "[INST] x")
        with pytest.raises(EngineError, match="not a sub-agent"):
            await sub_agents.hint(parent.id, "[INST] x")
        payload = '{"source":"message","patterns":["system_tags"],"action":"block"}'
        assert injections(harness.store.path) == [(second, second, run, payload), (first, first, None, payload)]
        await sub_agents.hint(first, "go on")
        assert len(injections(harness.store.path)) == 2, "one that is taken has no event"


async def test_a_hint_is_refused_also_where_its_event_cannot_be_stored(tmp_path: Path) -> None:
    settings = EngineSettings(max_agents=1, input_guard=GuardAction.BLOCK)
    async with engine_harness(tmp_path, *SCRIPT, settings=settings) as harness:
        _, _, second = await with_one_ended_and_one_at_work(harness)
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        with closing(sqlite3.connect(harness.store.path)) as connection, connection:
            connection.execute(
                "CREATE TRIGGER refused BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        with pytest.raises(EngineError, match="message blocked"):
            await sub_agents.hint(second, "[INST] x")
        with closing(sqlite3.connect(harness.store.path)) as connection, connection:
            connection.execute("DROP TRIGGER refused")
