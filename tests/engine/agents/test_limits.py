"""Limits of sub-agents: the user's settings, those of task and profile, and bounds of a project's profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.agents.manager import TaskRequest
from engine.executor.engine_settings import EngineSettings
from engine.ports.profiles import Profile
from tests.support.engine import engine_harness
from tests.support.fates import words
from tests.support.scripted_provider import Hang, Reply, ScriptedCall, Text

SPAWNS = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK one"}]})),), when="begin")


async def test_at_depth_0_no_model_can_start_any(tmp_path: Path) -> None:
    pity = Reply((Text("Pity."),))
    async with engine_harness(tmp_path, SPAWNS, pity, settings=EngineSettings(agent_depth=0)) as harness:
        assert harness.engine.tool_names == ("bash",)
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
        told = [words(message.blocks) for message in await harness.store.messages(parent.id)]
        assert told[-2:] == [
            "spawn_agents: sub-agents are switched off here (agent_depth = 0). There are: bash",
            "Pity.",
        ]
        assert await harness.store.agents.rows(parent.id) == []
        assert parent.routing.why_alone == "there are no sub-agents here"


async def test_one_that_has_used_up_its_own_budget_ends_and_its_parent_reads_so(tmp_path: Path) -> None:
    works = Reply((ScriptedCall("bash", '{"command": "make"}'),), when="TASK one", always=True)
    done = Reply((Text("Too dear."),), when="Sub-agent results")
    settings = EngineSettings(agent_budget_usd=0.02)  # each reply costs a cent
    async with engine_harness(tmp_path, SPAWNS, done, works, settings=settings) as harness:
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
        (row,) = await harness.store.agents.rows(parent.id)
        assert row.outcome is not None
        assert row.outcome.reason == "The budget of $0.02 for a sub-agent is used up ($0.02 spent)."
        assert len(harness.provider.requests) == 4, "two of its own, two of its parent"
        assert words((await harness.store.messages(parent.id))[-1].blocks) == "Too dear."


@pytest.mark.parametrize(
    ("project", "asked", "limits"),
    [
        (False, TaskRequest("t"), (100, 30.0)),
        (False, TaskRequest("t", max_turns=200, timeout=900.0), (200, 900.0)),
        (True, TaskRequest("t"), (20, 30.0)),
        (True, TaskRequest("t", max_turns=200, timeout=900.0), (20, 30.0)),
        (True, TaskRequest("t", max_turns=5, timeout=9.0), (5, 9.0)),
    ],
)
async def test_a_projects_profile_lowers_what_the_user_set_and_never_raises_it(
    tmp_path: Path, project: bool, asked: TaskRequest, limits: tuple[int, float]
) -> None:
    profile = Profile("own", max_turns=100, timeout=30.0, project=project)
    settings = EngineSettings(agent_turns=20, agent_timeout=300.0)
    async with engine_harness(tmp_path, Reply((Hang(),), always=True), settings=settings) as harness:
        assert harness.engine.sub_agents is not None
        harness.engine.ports.profiles.resolve = lambda _name, _cwd: profile  # type: ignore[union-attr,method-assign]  # the one of the test
        parent = await harness.conversation()
        await harness.engine.sub_agents.begin(parent.id, "call", asked)
        (view,) = harness.engine.sub_agents.views(parent.id)
        assert (view.max_turns, view.timeout) == limits
