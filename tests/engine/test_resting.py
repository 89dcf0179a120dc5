"""A conversation that was left is closed where nothing of it would be missed, and opens again from the store."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import TextBlock
from engine.machine.states import AwaitingApproval, AwaitingSubagents, Idle
from engine.open_conversations import KILOBYTES
from engine.records import PermissionMode
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.processes import start_plain
from tests.support.scripted_provider import Fail, Hang, Reply, ScriptedCall, Text
from tools import shedding
from tools.bash import Bash

SAYS = Reply((Text("one"),), always=True)
LISTS = Reply((ScriptedCall("bash", '{"command": "ls"}', "t1"),), when="list")
FAILS = Reply((Fail("no more today", retryable=False),), when="fail")
SPAWNS = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK 1"}]})),), when="begin")
HANGS = Reply((Hang(),), when="TASK", always=True)


async def watched(
    harness: EngineHarness, mode: PermissionMode = PermissionMode.AUTO
) -> tuple[Conversation, Callable[[], None]]:
    """A new one, and what ends looking at it."""
    conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main", permission_mode=mode))
    return conversation, await conversation.subscribe(lambda _update: None)


def is_open(harness: EngineHarness, conversation: Conversation) -> bool:
    """True while it is open, after closing those that are due."""
    harness.engine.resting.now()
    waits = len(harness.engine.resting)
    assert (conversation in harness.engine.live()) is bool(waits)
    return bool(waits)


def none_is_open(harness: EngineHarness) -> bool:
    """True when none is open; otherwise closes those that are due."""
    if not harness.engine.live():
        return True
    harness.engine.resting.now()
    return False


async def test_one_that_was_left_is_closed_and_comes_back_whole(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAYS) as harness:
        harness.engine.resting.patience = 0.0
        conversation, leave = await watched(harness)
        await conversation.say("a")
        await conversation.wait_idle()
        assert harness.engine.live() == (conversation,)
        leave()
        await until(lambda: harness.engine.live() == ())
        again = await harness.engine.open(conversation.id)
        assert again is not conversation
        assert not again.read_only, "it was given up before"
        await again.say("b")
        await again.wait_idle()
        sent = harness.provider.requests[-1].messages
        assert [block.text for one in sent for block in one.blocks if isinstance(block, TextBlock)] == ["a", "one", "b"]
        assert harness.jobs.ended == [], "its temporary folder stays"


async def test_one_that_is_looked_at_again_stays(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SAYS) as harness:
        conversation, leave = await watched(harness)
        leave()
        await conversation.subscribe(lambda _update: None)
        harness.engine.resting.now()
        assert harness.engine.live() == (conversation,)
        assert len(harness.engine.resting) == 0


async def test_one_at_work_stays_until_it_is_done(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, LISTS, SAYS, tool=StubTool(release=asyncio.Event())) as harness:
        conversation, leave = await watched(harness)
        await conversation.say("list")
        await harness.tool.started.wait()
        leave()
        assert is_open(harness, conversation)
        assert harness.tool.release is not None
        harness.tool.release.set()
        await conversation.wait_idle()
        harness.engine.resting.patience = 0.0
        await until(lambda: none_is_open(harness))


async def test_a_question_an_error_a_rule_and_a_side_question_keep_one_open(tmp_path: Path) -> None:
    slow = Reply((Hang(),), when="The question beside")
    async with engine_harness(tmp_path, LISTS, FAILS, slow, SAYS) as harness:
        conversation, leave = await watched(harness, PermissionMode.ASK)
        await conversation.say("list")
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        leave()
        assert is_open(harness, conversation)
        await until(lambda: conversation.question is not None)
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.CONVERSATION))
        await until(lambda: isinstance(conversation.state, Idle))
        assert conversation.rules
        assert is_open(harness, conversation), "its rule would be gone"
        conversation.rules.clear()
        await conversation.say("fail")
        await conversation.wait_idle()
        assert is_open(harness, conversation), "its error was not seen"
        conversation.cancel()
        await until(lambda: isinstance(conversation.state, Idle))
        asking = asyncio.create_task(conversation.side.ask("why"))
        await until(lambda: conversation.side.asked)
        assert is_open(harness, conversation)
        asking.cancel()
        await asyncio.wait((asking,))
        harness.engine.resting.now()
        await until(lambda: not harness.engine.live())


async def test_a_parent_stays_while_a_sub_agent_works_or_is_looked_at(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SPAWNS, HANGS, SAYS) as harness:
        parent, leave = await watched(harness)
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        await parent.say("begin")
        await until(lambda: isinstance(parent.state, AwaitingSubagents) and sub_agents.at_work(parent.id))
        (view,) = sub_agents.views(parent.id)
        child = await harness.engine.open(view.id)
        leave_child = await child.subscribe(lambda _update: None)
        leave()
        harness.engine.resting.now()
        assert parent in harness.engine.live()
        parent.cancel()
        await parent.wait_idle()
        await sub_agents.wait_finished(parent.id)
        harness.engine.resting.now()
        assert parent in harness.engine.live(), "its sub-agent is looked at"
        leave_child()
        await until(lambda: none_is_open(harness))


async def test_a_job_keeps_one_open_and_what_it_printed_stays_to_be_read(tmp_path: Path) -> None:
    processes = await start_plain()
    (tmp_path / "spill").mkdir()
    bash: Any = Bash(processes.jobs, tmp_path / "spill")
    command = json.dumps({"command": "echo begun; sleep 60", "background": True})
    begins = Reply((ScriptedCall("bash", command, "t1"),), when="begin")
    try:
        async with engine_harness(tmp_path, begins, SAYS, tool=bash, board=processes.jobs) as harness:
            conversation, leave = await watched(harness)
            await conversation.say("begin")
            await conversation.wait_idle()
            (job,) = conversation.jobs.all()
            leave()
            assert is_open(harness, conversation)
            await until(lambda: conversation.jobs.output(job.id).head)
            await conversation.jobs.kill(job.id)
            harness.engine.resting.now()
            await until(lambda: not harness.engine.live())
            again = await harness.engine.open(conversation.id)
            assert [one.id for one in again.jobs.all()] == [job.id]
            assert again.jobs.output(job.id).head.startswith(b"begun")
    finally:
        await processes.close()


@pytest.mark.parametrize("waits", [False, True])
async def test_the_end_of_the_engine_waits_for_those_that_are_being_closed(tmp_path: Path, waits: bool) -> None:
    async with engine_harness(tmp_path, SAYS) as harness:
        conversation, leave = await watched(harness)
        leave()
        if waits:
            harness.engine.resting.now()
        await harness.engine.close()
        assert harness.engine.live() == ()
        assert len(harness.engine.resting) == 0
        assert conversation not in harness.engine.live()


async def test_conversations_go_soon_after_some_were_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shedding, "AFTERWARDS", 0.0)
    monkeypatch.setattr(shedding, "DUE_AT", 2 * KILOBYTES)
    async with engine_harness(tmp_path, Reply((Text("One."),)), Reply((Text("Two."),))) as harness:
        gone: list[weakref.ref[Conversation]] = []
        gc.disable()
        try:
            for _ in range(2):
                conversation = await harness.conversation()
                await conversation.say("hello")
                await conversation.wait_idle()
                await harness.engine.forget(conversation.id)
                gone.append(weakref.ref(conversation))
                del conversation
            await until(lambda: _are_gone(gone))
        finally:
            gc.enable()


def _are_gone(gone: list[weakref.ref[Conversation]]) -> bool:
    """A task of the last one may end after the first collection, so others end here, too."""
    shedding.garbage.note_end(2 * KILOBYTES)
    return not any(one() for one in gone)
