"""Sub-agents from the call to the aggregate, on a real engine and store (SPEC BED-008, BED-009, STM-05, STM-09)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.executor.requests import Refused
from engine.machine.messages import Origin, Role, TextBlock, ToolResultBlock
from engine.machine.states import AwaitingSubagents, Completed, Failed, Idle
from engine.records import ConversationQuery, SpawnMode, StoredMessage
from engine.updates import AgentsChanged, AgentView, StateChanged
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Pause, Reply, ScriptedCall, Text

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
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
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
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
        (child,) = await children(harness, parent.id)
        assert [row.id for row in await harness.engine.list(ConversationQuery())] == [parent.id]
        opened = await harness.engine.open(child)
        assert await opened.say("hello") == Refused("sub-agent transcripts are read-only")
        assert isinstance(opened.state, Completed)


async def test_one_that_never_submits_is_a_failure_with_its_words_and_the_parent_goes_on(tmp_path: Path) -> None:
    talks = Reply((Text("I looked around."),), when="TASK one", always=True)
    async with engine_harness(tmp_path, spawns("TASK one"), talks, DONE) as harness:
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
        (child,) = await children(harness, parent.id)
        assert result_of(await harness.store.messages(parent.id)) == (
            "Sub-agent results (0 of 1 succeeded):\n\n"
            f"## 1. TASK one — failed: no result submitted [{child}]\nI looked around."
        )


async def test_esc_on_the_parent_stops_all_of_them_and_keeps_what_was_found(tmp_path: Path) -> None:
    slow = Reply((Text("thinking"), Pause(60.0)), when="TASK two", always=True)
    async with engine_harness(tmp_path, spawns("TASK one", "TASK two"), submits("one", "first"), slow) as harness:
        parent = await harness.conversation()
        await parent.say("begin")
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
        parent = await harness.conversation()
        await parent.say("begin")
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
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
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
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
        assert reason in result_of(await harness.store.messages(parent.id))
        assert await children(harness, parent.id) == []


async def test_a_sub_agent_has_no_tool_to_spawn_more(tmp_path: Path) -> None:
    nested = Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "deeper"}]}'),), when="TASK one")
    after = Reply(
        (ScriptedCall("submit_result", '{"result": "alone"}'),),
        when="a sub-agent starts no sub-agents: do the task yourself.",
    )
    async with engine_harness(tmp_path, spawns("TASK one"), after, nested, DONE) as harness:
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
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
        parent = await harness.conversation()
        await parent.say("begin")
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
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
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
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
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
        parent = await harness.conversation()
        await parent.say("begin")
        await until(lambda: isinstance(parent.state, AwaitingSubagents))
        await harness.engine.forget(parent.id)
        assert harness.engine.live() == ()
        (row,) = await harness.store.agents.rows(parent.id)
        assert row.outcome is not None
