"""A conversation that was left is closed where nothing of it would be missed, and opens again from the store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import TextBlock
from engine.machine.states import AwaitingApproval, AwaitingSubagents, Idle
from engine.providers.scripted import Fail, Hang, Reply, ScriptedCall, Text
from engine.records import PermissionMode
from tests.support.engine import Bench, StubTool, engine_bench, until
from tests.support.processes import start_plain
from tools.bash import Bash

SAYS = Reply((Text("one"),), always=True)
LISTS = Reply((ScriptedCall("bash", '{"command": "ls"}', "t1"),), when="list")
FAILS = Reply((Fail("no more today", retryable=False),), when="fail")
SPAWNS = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK 1"}]})),), when="begin")
HANGS = Reply((Hang(),), when="TASK", always=True)


async def watched(bench: Bench, mode: PermissionMode = PermissionMode.AUTO) -> tuple[Conversation, Callable[[], None]]:
    """A new one, and what ends looking at it."""
    conversation = await bench.engine.create(ConversationOptions(bench.cwd, "scripted/main", permission_mode=mode))
    return conversation, await conversation.subscribe(lambda _update: None)


def is_open(bench: Bench, conversation: Conversation) -> bool:
    """True while it is open, after closing those that are due."""
    bench.engine.resting.now()
    waits = len(bench.engine.resting)
    assert (conversation in bench.engine.live()) is bool(waits)
    return bool(waits)


def none_is_open(bench: Bench) -> bool:
    """True when none is open; otherwise closes those that are due."""
    if not bench.engine.live():
        return True
    bench.engine.resting.now()
    return False


async def test_one_that_was_left_is_closed_and_comes_back_whole(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, SAYS) as bench:
        bench.engine.resting.patience = 0.0
        conversation, leave = await watched(bench)
        await conversation.say("a")
        await conversation.wait_idle()
        assert bench.engine.live() == (conversation,)
        leave()
        await until(lambda: bench.engine.live() == ())
        again = await bench.engine.open(conversation.id)
        assert again is not conversation
        assert not again.read_only, "it was given up before"
        await again.say("b")
        await again.wait_idle()
        sent = bench.provider.requests[-1].messages
        assert [block.text for one in sent for block in one.blocks if isinstance(block, TextBlock)] == ["a", "one", "b"]
        assert bench.jobs.ended == [], "its temporary folder stays"


async def test_one_that_is_looked_at_again_stays(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, SAYS) as bench:
        conversation, leave = await watched(bench)
        leave()
        await conversation.subscribe(lambda _update: None)
        bench.engine.resting.now()
        assert bench.engine.live() == (conversation,)
        assert len(bench.engine.resting) == 0


async def test_one_at_work_stays_until_it_is_done(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, LISTS, SAYS, tool=StubTool(release=asyncio.Event())) as bench:
        conversation, leave = await watched(bench)
        await conversation.say("list")
        await bench.tool.started.wait()
        leave()
        assert is_open(bench, conversation)
        assert bench.tool.release is not None
        bench.tool.release.set()
        await conversation.wait_idle()
        bench.engine.resting.patience = 0.0
        await until(lambda: none_is_open(bench))


async def test_a_question_an_error_a_rule_and_a_side_question_keep_one_open(tmp_path: Path) -> None:
    slow = Reply((Hang(),), when="The question beside")
    async with engine_bench(tmp_path, LISTS, FAILS, slow, SAYS) as bench:
        conversation, leave = await watched(bench, PermissionMode.ASK)
        await conversation.say("list")
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        leave()
        assert is_open(bench, conversation)
        await until(lambda: conversation.question is not None)
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.CONVERSATION))
        await until(lambda: isinstance(conversation.state, Idle))
        assert conversation.rules
        assert is_open(bench, conversation), "its rule would be gone"
        conversation.rules.clear()
        await conversation.say("fail")
        await conversation.wait_idle()
        assert is_open(bench, conversation), "its error was not seen"
        conversation.cancel()
        await until(lambda: isinstance(conversation.state, Idle))
        asking = asyncio.create_task(conversation.side.ask("why"))
        await until(lambda: conversation.side.asked)
        assert is_open(bench, conversation)
        asking.cancel()
        await asyncio.wait((asking,))
        bench.engine.resting.now()
        await until(lambda: not bench.engine.live())


async def test_a_parent_stays_while_a_sub_agent_works_or_is_looked_at(tmp_path: Path) -> None:
    async with engine_bench(tmp_path, SPAWNS, HANGS, SAYS) as bench:
        parent, leave = await watched(bench)
        sub_agents = bench.engine.sub_agents
        assert sub_agents is not None
        await parent.say("begin")
        await until(lambda: isinstance(parent.state, AwaitingSubagents) and sub_agents.at_work(parent.id))
        (view,) = sub_agents.views(parent.id)
        child = await bench.engine.open(view.id)
        leave_child = await child.subscribe(lambda _update: None)
        leave()
        bench.engine.resting.now()
        assert parent in bench.engine.live()
        parent.cancel()
        await parent.wait_idle()
        await sub_agents.finished(parent.id)
        bench.engine.resting.now()
        assert parent in bench.engine.live(), "its sub-agent is looked at"
        leave_child()
        await until(lambda: none_is_open(bench))


async def test_a_job_keeps_one_open_and_what_it_printed_stays_to_be_read(tmp_path: Path) -> None:
    processes = await start_plain()
    (tmp_path / "spill").mkdir()
    bash: Any = Bash(processes.jobs, tmp_path / "spill")
    command = json.dumps({"command": "echo begun; sleep 60", "background": True})
    begins = Reply((ScriptedCall("bash", command, "t1"),), when="begin")
    try:
        async with engine_bench(tmp_path, begins, SAYS, tool=bash, board=processes.jobs) as bench:
            conversation, leave = await watched(bench)
            await conversation.say("begin")
            await conversation.wait_idle()
            (job,) = conversation.jobs.all()
            leave()
            assert is_open(bench, conversation)
            await until(lambda: conversation.jobs.output(job.id).head)
            await conversation.jobs.kill(job.id)
            bench.engine.resting.now()
            await until(lambda: not bench.engine.live())
            again = await bench.engine.open(conversation.id)
            assert [one.id for one in again.jobs.all()] == [job.id]
            assert again.jobs.output(job.id).head.startswith(b"begun")
    finally:
        await processes.close()


@pytest.mark.parametrize("waits", [False, True])
async def test_the_end_of_the_engine_waits_for_those_that_are_being_closed(tmp_path: Path, waits: bool) -> None:
    async with engine_bench(tmp_path, SAYS) as bench:
        conversation, leave = await watched(bench)
        leave()
        if waits:
            bench.engine.resting.now()
        await bench.engine.close()
        assert bench.engine.live() == ()
        assert len(bench.engine.resting) == 0
        assert conversation not in bench.engine.live()
