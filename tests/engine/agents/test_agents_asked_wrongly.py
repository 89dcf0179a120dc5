"""Explanations of invalid calls to the model, without endless waits (SPEC T-TURN 9, 10)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.codec import encode_blocks
from engine.machine.messages import Origin, TextBlock, ToolResultBlock
from engine.machine.states import Idle
from engine.ports.profiles import Profile, ProfileError
from engine.store import StorePaths
from engine.updates import ToolEnded
from tests.support.engine import BuiltIn, EngineHarness, StubTool, engine_harness, until
from tests.support.fates import unanswered, words
from tests.support.scripted_provider import Pause, Reply, ScriptedCall, Text
from tests.support.storage import query


async def told(tmp_path: Path, *calls: ScriptedCall) -> list[str]:
    """Results for the model of a user's conversation for these calls of one reply."""
    async with engine_harness(tmp_path, Reply(calls, when="begin"), Reply((Text("Pity."),))) as harness:
        parent = await harness.conversation()
        await parent.say("begin")
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
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
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
        parent = await harness.conversation()
        await parent.say("hi")
        await parent.wait_idle()
        leave_completions(tmp_path, parent.id, 4)
        for _ in range(4):
            parent.agents.begin_turn()
        await parent.wait_idle()
        assert await completions(harness, parent.id) == [(f"child {n} is done", 1) for n in range(4)]
        assert len(harness.provider.requests) == 2


async def test_four_completions_join_the_turn_of_a_parent_at_work(tmp_path: Path) -> None:
    looks = Reply((Pause(0.0), ScriptedCall("bash", '{"command": "ls"}')))
    async with engine_harness(tmp_path, looks, Reply((Text("two"),))) as harness:
        parent = await harness.conversation()
        await parent.say("hi")
        await until(lambda: harness.provider.requests)
        leave_completions(tmp_path, parent.id, 4)
        parent.agents.begin_turn()
        await parent.wait_idle()
        assert await completions(harness, parent.id) == [(f"child {n} is done", 0) for n in range(4)]
        assert len(harness.provider.requests) == 2
