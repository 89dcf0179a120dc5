"""Order of the updates about a sub-agent's end."""

from __future__ import annotations

from pathlib import Path

from engine.conversation import Conversation
from engine.machine.agent_texts import SUBMITTED
from engine.machine.messages import ToolUseBlock
from engine.updates import MessageSaved, ToolEnded, Update
from tests.support.engine import engine_harness
from tests.support.scripted_provider import Reply, ScriptedCall, Text

SPAWNS = Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "TASK one"}]}'),), when="begin")
SUBMITS = Reply((ScriptedCall("submit_result", '{"result": "made"}'),), when="TASK one")


async def test_a_submission_is_told_before_its_result(tmp_path: Path) -> None:
    told: list[str] = []

    def hear(_: Conversation, update: Update) -> None:
        if isinstance(update, ToolEnded):
            told.append(update.result.text)
        if isinstance(update, MessageSaved):
            told.extend(block.name for block in update.message.blocks if isinstance(block, ToolUseBlock))

    async with engine_harness(tmp_path, SPAWNS, SUBMITS, Reply((Text("Back."),), when="Sub-agent results")) as harness:
        harness.engine.follow_agents(hear)
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
    assert told == ["submit_result", SUBMITTED]
