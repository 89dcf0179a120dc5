"""Sub-agents of a conversation that is put away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.machine.states import Failed, Idle
from engine.ports import ConversationChanges
from tests.support.engine import engine_harness, until
from tests.support.scripted_provider import Pause, Reply, ScriptedCall, Text

BEGINS = Reply(
    (ScriptedCall("spawn_task", json.dumps({"task_description": "one", "initial_prompt": "TASK one"})),), when="go"
)
GOES_ON = Reply((Text("It works."),), when="started")
ENDLESS = Reply((Pause(60.0),), when="TASK one", always=True)


@pytest.mark.parametrize("changes", [ConversationChanges(archived=True), ConversationChanges(deleted=True)])
async def test_what_works_in_the_background_is_stopped(changes: ConversationChanges, tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BEGINS, ENDLESS, GOES_ON) as harness:
        parent = await harness.conversation()
        await parent.say("go")
        await parent.wait_idle()
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        assert sub_agents.at_work(parent.id) == 1
        await parent.change(changes)
        await until(
            lambda: sub_agents.at_work(parent.id) == 0 and isinstance(sub_agents.views(parent.id)[0].state, Failed)
        )
        assert isinstance(parent.state, Idle)
