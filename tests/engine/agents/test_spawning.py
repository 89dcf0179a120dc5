"""Sub-agents from the call to the aggregate (SPEC BED-008, BED-009, STM-05, STM-09, T-TURN 9, 10), and their limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from engine.agents.manager import SubAgents, TaskRequest
from engine.agents.spawn_tools import SpawnAgents, SpawnTask
from engine.codec import encode_blocks
from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Refused
from engine.machine.messages import Origin, Role, TextBlock, ToolResultBlock
from engine.machine.states import AwaitingSubagents, Completed, Failed, Idle
from engine.ports import ConversationChanges
from engine.ports.profiles import Profile, ProfileError
from engine.records import ConversationQuery, PermissionMode, SpawnMode, StoredMessage
from engine.store import StorePaths
from engine.updates import AgentsChanged, AgentView, StateChanged, ToolEnded
from tests.support.engine import BuiltIn, EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.fates import unanswered, words
from tests.support.scripted_provider import Hang, Pause, Reply, ScriptedCall, Text
from tests.support.storage import query

DONE = Reply((Text("Both are back."),), when="Sub-agent results")


def spawns(*tasks: str, **more: object) -> Reply:
    arguments = {"tasks": [{"task": task} for task in tasks]} | more
    return Reply((ScriptedCall("spawn_agents", json.dumps(arguments)),), when="begin")


def submits(when: str, result: str, *, always: bool = False) -> Reply:
    return Reply((ScriptedCall("submit_result", json.dumps({"result": result})),), when=f"TASK {when}", always=always)


def result_of(messages: list[StoredMessage]) -> str:
    """The result of the first tool call."""
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)]
    return "".join(part.text for part in blocks[0].content if isinstance(part, TextBlock))


async def children(harness: EngineHarness, parent: str) -> list[str]:
    return [row.id for row in await harness.store.agents.rows(parent)]


async def test_two_agents_work_at_once_and_their_results_come_back_in_request_order(tmp_path: Path) -> None:
    replies = (spawns("TASK one", "TASK two"), submits("one", "first"), submits("two", "second"), DONE)
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await harness.run("begin")
        first, second = await children(harness, parent.id)
        messages = await harness.store.messages(parent.id)
        assert result_of(messages) == (
            "Sub-agent results (2 of 2 succeeded):\n\n"
            f"## 1. TASK one — success [{first}]\nfirst\n\n"
            f"## 2. TASK two — success [{second}]\nsecond"
        )
        assert messages[-1].blocks == (TextBlock("Both are back."),)
        shown = harness.seen(AgentsChanged)[-1].agents
        assert [(view.task, view.outcome and view.outcome.text) for view in shown] == [
            ("TASK one", "first"),
            ("TASK two", "second"),
        ]
        waits = [told for told in harness.seen(StateChanged) if isinstance(told.state, AwaitingSubagents)]
        assert (len(waits), len({told.since for told in waits})) == (2, 1), "an end is no new wait: its clock goes on"


async def test_they_stand_in_no_list_and_take_no_messages_of_the_user(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, spawns("TASK one"), submits("one", "first"), DONE) as harness:
        parent = await harness.run("begin")
        (child,) = await children(harness, parent.id)
        assert [row.id for row in await harness.engine.list(ConversationQuery())] == [parent.id]
        opened = await harness.engine.open(child)
        assert await opened.say("hello") == Refused("sub-agent transcripts are read-only")
        assert isinstance(opened.state, Completed)


async def test_one_that_never_submits_is_a_failure_with_its_words_and_the_parent_goes_on(tmp_path: Path) -> None:
    talks = Reply((Text("I looked around."),), when="TASK one", always=True)
    async with engine_harness(tmp_path, spawns("TASK one"), talks, DONE) as harness:
        parent = await harness.run("begin")
        (child,) = await children(harness, parent.id)
        assert result_of(await harness.store.messages(parent.id)) == (
            "Sub-agent results (0 of 1 succeeded):\n\n"
            f"## 1. TASK one — failed: no result submitted [{child}]\nI looked around."
        )


async def test_esc_on_the_parent_stops_all_of_them_and_keeps_what_was_found(tmp_path: Path) -> None:
    slow = Reply((Text("thinking"), Pause(60.0)), when="TASK two", always=True)
    async with engine_harness(tmp_path, spawns("TASK one", "TASK two"), submits("one", "first"), slow) as harness:
        parent = await harness.start("begin")
        await until(lambda: isinstance(parent.state, AwaitingSubagents) and parent.state.outcomes)
        parent.cancel()
        assert isinstance(await parent.wait_idle(), Idle)
        told = result_of(await harness.store.messages(parent.id))
        assert told.startswith("Cancelled by user\n\nSub-agent results (1 of 2 succeeded):")
        assert "TASK two — failed: cancelled" in told
        _, second = await children(harness, parent.id)
        await until(lambda: isinstance(_open(harness, second).state, Failed))


def _open(harness: EngineHarness, conversation_id: str) -> Conversation:
    return next(one for one in harness.engine.live() if one.id == conversation_id)


async def test_no_more_than_the_cap_work_at_once_and_the_urgent_start_first(tmp_path: Path) -> None:
    tasks = [{"task": f"TASK {n}", "priority": "high" if n == 6 else "normal"} for n in range(7)]
    call = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": tasks})),), when="begin")
    slow = Reply((Pause(60.0),), when="TASK", always=True)
    async with engine_harness(tmp_path, call, slow) as harness:
        parent = await harness.start("begin")
        await until(lambda: sum(not view.waits for view in _views(harness, parent.id)) == 4)
        at_work = [view.task for view in _views(harness, parent.id) if not view.waits]
        assert at_work == ["TASK 0", "TASK 1", "TASK 2", "TASK 6"]
        parent.cancel()
        await parent.wait_idle()
        assert result_of(await harness.store.messages(parent.id)).count("failed: cancelled") == 7


def _views(harness: EngineHarness, parent_id: str) -> tuple[AgentView, ...]:
    assert harness.engine.sub_agents is not None
    return harness.engine.sub_agents.views(parent_id)


async def test_one_after_the_other_each_knows_the_results_before_it(tmp_path: Path) -> None:
    replies = (
        spawns("TASK one", "TASK two", strategy="sequential"),
        Reply((ScriptedCall("submit_result", '{"result": "ok, 42"}'),), when="found 41"),
        submits("one", "found 41"),
        DONE,
    )
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await harness.run("begin")
        assert "ok, 42" in result_of(await harness.store.messages(parent.id))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"tasks": []}', "tasks must be a list of 1 to 10 tasks; there are 0."),
        ('{"tasks": [' + ",".join(['{"task": "x"}'] * 11) + "]}", "there are 11"),
        ('{"tasks": [{"task": "x", "profile": "wizard"}]}', "There is no profile 'wizard'."),
        ('{"tasks": [{"task": " "}]}', "tasks[0].task is empty"),
        ('{"tasks": [{"task": "x", "timeout": 1e9}]}', "tasks[0].timeout must be between 0 and 86400"),
        ('{"tasks": "x"}', "there are none"),
        ('{"tasks": [{"task": "x"}], "strategy": "random"}', "strategy must be parallel or sequential, not random."),
    ],
)
async def test_an_order_that_makes_no_sense_is_explained_to_the_model(
    tmp_path: Path, arguments: str, reason: str
) -> None:
    call = Reply((ScriptedCall("spawn_agents", arguments),), when="begin")
    async with engine_harness(tmp_path, call, Reply((Text("Pity."),))) as harness:
        parent = await harness.run("begin")
        assert reason in result_of(await harness.store.messages(parent.id))
        assert await children(harness, parent.id) == []


async def test_a_sub_agent_has_no_tool_to_spawn_more(tmp_path: Path) -> None:
    nested = Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "deeper"}]}'),), when="TASK one")
    after = Reply(
        (ScriptedCall("submit_result", '{"result": "alone"}'),),
        when="a sub-agent starts no sub-agents: do the task yourself.",
    )
    async with engine_harness(tmp_path, spawns("TASK one"), after, nested, DONE) as harness:
        parent = await harness.run("begin")
        assert "alone" in result_of(await harness.store.messages(parent.id))


async def test_a_background_task_wakes_its_idle_parent_into_a_new_turn(tmp_path: Path) -> None:
    call = Reply(
        (ScriptedCall("spawn_task", '{"task_description": "look", "initial_prompt": "TASK one"}'),), when="begin"
    )
    replies = (
        call,
        Reply((Text("Started."),), when=" started"),
        Reply((Pause(0.05), ScriptedCall("submit_result", '{"result": "All green"}')), when="TASK one"),
        Reply((Text("So it is green."),), when="[SYSTEM] Child task"),
    )
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await harness.start("begin")
        assert harness.engine.sub_agents is not None
        await harness.engine.sub_agents.wait_finished(parent.id)
        await until(lambda: len(harness.provider.requests) == 4)
        await parent.wait_idle()
        (row,) = await harness.store.agents.rows(parent.id)
        messages = await harness.store.messages(parent.id)
        told = next(message for message in messages if message.origin is Origin.COMPLETION)
        assert told.blocks == (
            TextBlock(
                f"[SYSTEM] Child task {row.id} has completed successfully.\n"
                "Ran 1 turns with 1 tool iterations.\n"
                f"You can continue the conversation by calling spawn_task with task_id='{row.id}' and a new message.\n"
                "\nFinal response from child:\nAll green"
            ),
        )
        assert (told.role, told.turn_number, messages[0].turn_number) == (Role.USER, 1, 0)
        assert messages[-1].blocks == (TextBlock("So it is green."),)
        assert row.facts.mode is SpawnMode.BACKGROUND


async def test_an_unknown_task_is_named_with_those_there_are(tmp_path: Path) -> None:
    call = Reply((ScriptedCall("spawn_task", '{"task_id": "t9", "message": "go on"}'),), when="begin")
    async with engine_harness(tmp_path, call, Reply((Text("Pity."),))) as harness:
        parent = await harness.run("begin")
        told = result_of(await harness.store.messages(parent.id))
        assert told == "spawn_task: There is no task t9 of this conversation. There are: none."


async def test_an_ended_task_goes_on_where_it_left_off(tmp_path: Path) -> None:
    replies = (
        spawns("TASK one"),
        Reply((ScriptedCall("submit_result", '{"result": "and more"}'),), when="dig deeper"),
        submits("one", "first"),
        DONE,
        Reply((Text("Thanks."),), when="and more"),
    )
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await harness.run("begin")
        (child,) = await children(harness, parent.id)
        assert harness.engine.sub_agents is not None
        await harness.engine.sub_agents.hint(child, "dig deeper")
        await until(lambda: len(harness.provider.requests) == 5)
        await parent.wait_idle()
        messages = await harness.store.messages(child)
        prompts = [m for m in messages if m.role is Role.USER and m.origin is not Origin.TOOL]
        assert [(m.turn_number, m.origin) for m in prompts] == [(0, Origin.SUBAGENT), (1, Origin.HUMAN)]
        assert (await harness.store.messages(parent.id))[-1].blocks == (TextBlock("Thanks."),)


async def test_closing_the_parent_ends_its_agents(tmp_path: Path) -> None:
    slow = Reply((Pause(60.0),), when="TASK", always=True)
    async with engine_harness(tmp_path, spawns("TASK one"), slow) as harness:
        parent = await harness.start("begin")
        await until(lambda: isinstance(parent.state, AwaitingSubagents))
        await harness.engine.forget(parent.id)
        assert harness.engine.live() == ()
        (row,) = await harness.store.agents.rows(parent.id)
        assert row.outcome is not None


async def told(tmp_path: Path, *calls: ScriptedCall) -> list[str]:
    """Results for the model of a user's conversation for these calls of one reply."""
    async with engine_harness(tmp_path, Reply(calls, when="begin"), Reply((Text("Pity."),))) as harness:
        parent = await harness.start("begin")
        assert isinstance(await parent.wait_idle(), Idle)
        assert await harness.store.agents.rows(parent.id) == []
        assert len(harness.seen(ToolEnded)) == len(calls), "the user sees it too"
        assert all(update.result.is_error for update in harness.seen(ToolEnded))
        messages = await harness.store.messages(parent.id)
        assert unanswered(messages) == []
        blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)]
        return [words((block,)) for block in blocks]


def spawn_task(**arguments: object) -> ScriptedCall:
    return ScriptedCall("spawn_task", json.dumps(arguments))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (spawn_task(), "The argument task_description is missing."),
        (spawn_task(task_description="x", initial_prompt=" "), "neither empty"),
        (spawn_task(task_id="", message="go on"), "give its task_id and a message"),
        (spawn_task(task_id="nobody", message="go on"), "There is no task nobody of this conversation."),
        (spawn_task(task_description="x", initial_prompt="y", timeout=1e12), "timeout must be between 0 and 86400"),
        (spawn_task(task_description="x", initial_prompt="y", timeout=0.5), "must be at least 1"),
        (spawn_task(task_description="x", initial_prompt="y", timeout=-1), "timeout must be between 0 and 86400"),
        (spawn_task(task_description="x", initial_prompt="y", timeout=10**400), "not a number with hundreds of digits"),
        (spawn_task(task_description="x", initial_prompt="y", max_turns=10**9), "max_turns must be between 0 and 250"),
        (spawn_task(task_description="x", initial_prompt="y", profile="wizard"), "There is no profile 'wizard'."),
        (spawn_task(task_description="x", initial_prompt="y", agents=3), "agents"),
        (ScriptedCall("spawn_agents", '{"tasks": [{"task": "x", "priority": "asap"}]}'), "priority must be one of"),
        (ScriptedCall("spawn_agents", '{"tasks": ["x"]}'), "tasks[0] must be an object"),
        (ScriptedCall("spawn_agents", '{"tasks": [{"task": "x"'), "not one JSON object"),
        (ScriptedCall("submit_result", '{"result": "x"}'), "no such tool"),
        (ScriptedCall("submit_error", '{"error": "x"}'), "no such tool"),
    ],
)
async def test_a_call_that_makes_no_sense_is_explained(tmp_path: Path, call: ScriptedCall, reason: str) -> None:
    (text,) = await told(tmp_path, call)
    assert reason in text


async def test_one_bad_call_takes_no_other_with_it(tmp_path: Path) -> None:
    first, second = await told(
        tmp_path, ScriptedCall("spawn_agents", '{"tasks": []}'), spawn_task(task_id="t", message="m")
    )
    assert "there are 0" in first
    assert "There is no task t" in second


class Broken(BuiltIn):
    """One profile's file cannot be read."""

    def resolve(self, name: str, cwd: Path) -> Profile:
        if name == "torn":
            raise ProfileError("torn.md, line 3: 'tools' must be a list of names.")
        return super().resolve(name, cwd)


async def test_a_profile_with_a_broken_file_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.engine.BuiltIn", Broken)
    (text,) = await told(tmp_path, ScriptedCall("spawn_agents", '{"tasks": [{"task": "x", "profile": "torn"}]}'))
    assert text == "spawn_agents: torn.md, line 3: 'tools' must be a list of names."


async def test_a_result_next_to_another_call_is_an_error_for_both_and_runs_nothing(tmp_path: Path) -> None:
    both = (ScriptedCall("submit_result", '{"result": "early"}'), ScriptedCall("bash", '{"command": "ls"}'))
    replies = (
        Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "TASK one"}]}'),), when="begin"),
        Reply((ScriptedCall("submit_result", '{"result": "alone"}'),), when="must be the only tool"),
        Reply(both, when="TASK one"),
        Reply((Text("Done."),), when="Sub-agent results"),
    )
    tool = StubTool()
    async with engine_harness(tmp_path, *replies, tool=tool) as harness:
        parent = await harness.run("begin")
        (row,) = await harness.store.agents.rows(parent.id)
        assert (row.outcome and row.outcome.text, tool.calls) == ("alone", [])
        results = [
            (words((block,)), block.is_error)
            for message in await harness.store.messages(row.id)
            for block in message.blocks
            if isinstance(block, ToolResultBlock)
        ]
        assert results == [("submit_result must be the only tool in response", True)] * 2 + [("Submitted.", False)]


def leave_completions(tmp_path: Path, conversation_id: str, count: int) -> None:
    for number in range(count):
        query(
            StorePaths.under(tmp_path).database,
            "INSERT INTO inbox (conversation_id, type, content_json, sender_id, created_at) VALUES (?, ?, ?, ?, ?)",
            conversation_id,
            "completion",
            encode_blocks((TextBlock(f"child {number} is done"),)),
            "child",
            1.0,
        )


async def completions(harness: EngineHarness, conversation_id: str) -> list[tuple[str, int]]:
    messages = await harness.store.messages(conversation_id)
    return [(words(m.blocks), m.turn_number) for m in messages if m.origin is Origin.COMPLETION]


async def test_four_completions_wake_an_idle_parent_into_one_new_turn(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("one"),)), Reply((Text("two"),))) as harness:
        parent = await harness.run("hi")
        leave_completions(tmp_path, parent.id, 4)
        for _ in range(4):
            parent.agents.begin_turn()
        await parent.wait_idle()
        assert await completions(harness, parent.id) == [(f"child {n} is done", 1) for n in range(4)]
        assert len(harness.provider.requests) == 2


async def test_four_completions_join_the_turn_of_a_parent_at_work(tmp_path: Path) -> None:
    looks = Reply((Pause(0.0), ScriptedCall("bash", '{"command": "ls"}')))
    async with engine_harness(tmp_path, looks, Reply((Text("two"),))) as harness:
        parent = await harness.start("hi")
        await until(lambda: harness.provider.requests)
        leave_completions(tmp_path, parent.id, 4)
        parent.agents.begin_turn()
        await parent.wait_idle()
        assert await completions(harness, parent.id) == [(f"child {n} is done", 0) for n in range(4)]
        assert len(harness.provider.requests) == 2


SPAWNS = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK one"}]})),), when="begin")


async def test_at_depth_0_no_model_can_start_any(tmp_path: Path) -> None:
    pity = Reply((Text("Pity."),))
    async with engine_harness(tmp_path, SPAWNS, pity, settings=EngineSettings(agent_depth=0)) as harness:
        assert harness.engine.tool_names == ("bash",)
        parent = await harness.run("begin")
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
        parent = await harness.run("begin")
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
        await run_turn(conversation, "hi")
        assert [tool.name for tool in harness.provider.requests[0].tools] == names


async def test_a_profile_that_is_gone_takes_nothing_away(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("Hello."),))) as harness:
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main", profile="gone"))
        await run_turn(conversation, "hi")
        assert "bash" in {tool.name for tool in harness.provider.requests[0].tools}


BEGINS = Reply(
    (ScriptedCall("spawn_task", json.dumps({"task_description": "one", "initial_prompt": "TASK one"})),), when="go"
)
GOES_ON = Reply((Text("It works."),), when="started")
ENDLESS = Reply((Pause(60.0),), when="TASK one", always=True)


@pytest.mark.parametrize("changes", [ConversationChanges(archived=True), ConversationChanges(deleted=True)])
async def test_what_works_in_the_background_is_stopped(changes: ConversationChanges, tmp_path: Path) -> None:
    async with engine_harness(tmp_path, BEGINS, ENDLESS, GOES_ON) as harness:
        parent = await harness.run("go")
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        assert sub_agents.at_work(parent.id) == 1
        await parent.change(changes)
        await until(
            lambda: sub_agents.at_work(parent.id) == 0 and isinstance(sub_agents.views(parent.id)[0].state, Failed)
        )
        assert isinstance(parent.state, Idle)
