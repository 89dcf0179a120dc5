"""While memory is short nothing new begins: each way says why, what runs goes on, and it begins again afterwards."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, MemoryShort, Refused
from engine.machine.messages import TextBlock, ToolResultBlock
from engine.machine.states import Idle
from engine.updates import Noticed
from tests.support.engine import StubTool, engine_harness, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text

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
        conversation = await harness.conversation()
        await conversation.say("a")
        await conversation.wait_idle()
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
        conversation = await harness.conversation()
        await conversation.say("list")
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
        conversation = await harness.conversation()
        await conversation.say("begin")
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
