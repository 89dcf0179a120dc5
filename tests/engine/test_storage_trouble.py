"""No memory or no store in the middle of work: nothing begins or is lost, and all goes on without a restart."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, MemoryShort, Refused
from engine.machine.messages import Role, TextBlock, ToolResultBlock
from engine.machine.states import Errored, Idle
from engine.ports import Committed, Move, StorageError
from engine.store import Store
from engine.updates import Noticed, RunEnded
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text

FULL = "The disk is full: free some space."
HELLO = Reply((Text("hello"),))


def break_after(
    harness: EngineHarness,
    monkeypatch: pytest.MonkeyPatch,
    commits: int,
    failures: int = 10**6,
    error: Exception = StorageError(FULL),  # noqa: B008 - raised, never changed
) -> None:
    """Let `commits` moves through, then fail `failures` of them."""
    real, count = Store.commit, 0

    async def commit(store: Store, move: Move) -> Committed:
        nonlocal count
        count += 1
        if commits < count <= commits + failures:
            raise error
        return await real(store, move)

    monkeypatch.setattr(Store, "commit", commit)


async def test_a_message_that_cannot_be_stored_is_refused_and_the_model_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, 0)
        assert await conversation.say("hi") == Refused(FULL)
        assert isinstance(conversation.state, Errored)
        assert harness.provider.requests == []
        assert await harness.store.messages(conversation.id) == []


async def test_once_the_store_works_again_the_same_message_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, 0, failures=2)
        assert isinstance(await conversation.say("hi"), Refused)
        assert isinstance(await conversation.say("hi"), Refused)
        assert isinstance(await conversation.say("hi"), Accepted)
        assert isinstance(await conversation.wait_idle(), Idle)


async def test_a_mistake_of_phoenix_itself_leaves_no_conversation_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_harness(tmp_path, HELLO) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, 1, failures=1, error=KeyError("no such column"))
        assert isinstance(await run_turn(conversation, "hi"), Errored)
        assert "Internal error" in harness.seen(RunEnded)[-1].error
        assert isinstance(await conversation.retry(), Accepted)
        assert isinstance(await conversation.wait_idle(), Idle)


@pytest.mark.parametrize("stored", [1, 2, 3])
async def test_a_run_that_loses_its_store_ends_and_the_conversation_is_valid_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int
) -> None:
    tools = Reply((ScriptedCall("bash", "{}", "t1"), ScriptedCall("bash", "{}", "t2")))
    async with engine_harness(tmp_path, tools, HELLO, HELLO) as harness:
        conversation = await harness.conversation()
        break_after(harness, monkeypatch, stored, failures=1)
        state = await run_turn(conversation, "go")
        assert isinstance(state, Errored)
        assert (state.kind, state.message) == ("storage", FULL)
        assert harness.seen(RunEnded)[-1].error_code == "storage"
        assert isinstance(await run_turn(conversation, "again"), Idle)
        rows = await harness.store.messages(conversation.id)
        assert rows[-1].blocks == (TextBlock("hello"),)
        answered = [b.tool_use_id for row in rows for b in row.blocks if isinstance(b, ToolResultBlock)]
        assert answered == ([] if stored == 1 else ["t1", "t2"])
        assert [row.role for row in rows if row.role is Role.USER]


WHY = "Memory is short, so nothing new begins."
SAYS = Reply((Text("one"),), always=True)
LISTS = Reply((ScriptedCall("bash", '{"command": "ls"}', "t1"),), when="list")
BACKGROUND = {"task_description": "one", "initial_prompt": "TASK 1"}


class Gauge:
    """Memory that is short or not."""

    def __init__(self) -> None:
        self.is_short = False
        self.settings = EngineSettings(memory_gauge=self, auto_title=True)

    def refusal(self) -> str:
        return WHY if self.is_short else ""


async def test_nothing_new_begins_and_all_begins_again(tmp_path: Path) -> None:
    gauge = Gauge()
    async with engine_harness(tmp_path, SAYS, settings=gauge.settings) as harness:
        conversation = await harness.run("a")
        other = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main"))
        await harness.engine.forget(other.id)
        gauge.is_short, asked = True, len(harness.provider.requests)
        assert await conversation.say("b") == Refused(WHY)
        assert await conversation.retry() == Refused(WHY)
        assert await conversation.interrupt_and_say("b") == Refused(WHY)
        for work in (
            harness.engine.create(ConversationOptions(harness.cwd, "scripted/main")),
            harness.engine.open(other.id),
            harness.engine.fork(conversation.id),
        ):
            with pytest.raises(MemoryShort, match="Memory is short"):
                await work
        assert await harness.engine.open(conversation.id) is conversation
        assert len((await conversation.history(1 << 40, 9)).messages) == 2
        assert len(harness.provider.requests) == asked
        gauge.is_short = False
        assert isinstance(await conversation.say("b"), Accepted)
        await conversation.wait_idle()
        assert (await harness.engine.open(other.id)).id == other.id


async def test_what_runs_is_not_stopped_by_a_message_that_is_refused(tmp_path: Path) -> None:
    gauge = Gauge()
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(tmp_path, LISTS, SAYS, tool=tool, settings=gauge.settings) as harness:
        conversation = await harness.start("list")
        await tool.started.wait()
        gauge.is_short = True
        assert await conversation.interrupt_and_say("b") == Refused(WHY)
        assert isinstance(await conversation.queue.add("later"), Accepted)
        assert tool.release is not None
        tool.release.set()
        await conversation.wait_idle()
        await until(lambda: conversation.queue.held)
        assert [one.text for one in conversation.queue.waiting] == ["later"]
        assert any(WHY in one.text for one in harness.seen(Noticed))
        gauge.is_short = False
        await conversation.queue.go_on()
        await until(lambda: not conversation.queue.waiting and isinstance(conversation.state, Idle))


@pytest.mark.parametrize("name", ["spawn_agents", "spawn_task"])
async def test_a_model_is_told_why_no_sub_agent_begins(tmp_path: Path, name: str) -> None:
    gauge = Gauge()
    order = {"tasks": [{"task": "TASK 1"}]} if name == "spawn_agents" else BACKGROUND
    spawns = Reply(
        (ScriptedCall("bash", '{"command": "ls"}', "t1"), ScriptedCall(name, json.dumps(order), "t2")), when="begin"
    )
    tool = StubTool(release=asyncio.Event())
    async with engine_harness(tmp_path, spawns, SAYS, tool=tool, settings=gauge.settings) as harness:
        conversation = await harness.start("begin")
        await tool.started.wait()
        gauge.is_short = True
        assert tool.release is not None
        tool.release.set()
        await conversation.wait_idle()
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        assert sub_agents.views(conversation.id) == ()
        found = [
            part.text
            for message in (await conversation.history(1 << 40, 20)).messages
            for block in message.blocks
            if isinstance(block, ToolResultBlock) and block.tool_use_id == "t2"
            for part in block.content
            if isinstance(part, TextBlock)
        ]
        assert any("Memory is short" in text for text in found), found
