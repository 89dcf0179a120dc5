"""Limits of sub-agents: the user's settings, those of task and profile, and bounds of a project's profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from engine.agents.manager import SubAgents, TaskRequest
from engine.agents.spawn_tools import SpawnAgents, SpawnTask
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.machine.states import Failed, Idle
from engine.ports import ConversationChanges
from engine.ports.profiles import Profile
from engine.records import PermissionMode
from tests.support.engine import BuiltIn, engine_harness, until
from tests.support.fates import words
from tests.support.scripted_provider import Hang, Pause, Reply, ScriptedCall, Text

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


class Added(BuiltIn):
    """More profiles than there is room for."""

    def list_added(self, cwd: Path) -> tuple[Profile, ...]:
        many = [Profile(f"p{number}", "x" * 400) for number in range(60)]
        return (Profile("tools:reviewer", "Reviews\x1b[2J\n code"), Profile("bare"), *many)


def test_each_is_named_to_the_model_with_its_description_as_far_as_there_is_room() -> None:
    starter = cast("SubAgents", None)  # nothing is started
    for tool in (SpawnAgents(starter, Added()), SpawnTask(starter, Added())):
        told = json.dumps(tool.spec.input_schema, ensure_ascii=False)
        assert "Also:\\ntools:reviewer: Reviews code\\nbare\\np0: xx" in told
        assert "and 7 more without room for a name here" in told
    assert "Also:" not in json.dumps(SpawnTask(starter, BuiltIn()).spec.input_schema)


@pytest.mark.parametrize(
    ("profile", "names"),
    [("", ["bash", "spawn_agents", "spawn_task"]), ("code", ["bash", "spawn_agents", "spawn_task"]), ("explore", [])],
)
async def test_a_profile_says_what_the_users_own_conversation_may_call(
    tmp_path: Path, profile: str, names: list[str]
) -> None:
    async with engine_harness(tmp_path, Reply((Text("Hello."),))) as harness:
        options = ConversationOptions(
            harness.cwd, "scripted/main", permission_mode=PermissionMode.AUTO, profile=profile
        )
        conversation = await harness.engine.create(options)
        await conversation.say("hi")
        await conversation.wait_idle()
        assert [tool.name for tool in harness.provider.requests[0].tools] == names


async def test_a_profile_that_is_gone_takes_nothing_away(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("Hello."),))) as harness:
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main", profile="gone"))
        await conversation.say("hi")
        await conversation.wait_idle()
        assert "bash" in {tool.name for tool in harness.provider.requests[0].tools}


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
