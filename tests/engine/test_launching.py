"""A message to a running, a resting and an unknown conversation, and to such a sub-agent (SPEC UNI-14)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from engine.engine import ConversationOptions
from engine.executor.requests import Accepted, EngineError, Refused
from engine.machine.messages import TextBlock, ToolResultBlock
from engine.machine.states import is_busy
from engine.ports import ConversationChanges, StorageError
from engine.records import StoredMessage
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tests.support.storage import query

LOGGER = "engine.executor.user_requests"
CALLS = Reply((ScriptedCall("bash", '{"command": "sleep"}', "b1"),))
REPLIES = tuple(Reply((Text(text),)) for text in ("Slept.", "Yes.", "Again."))


def words(messages: list[StoredMessage]) -> list[str]:
    """All texts, results of tools included."""
    found: list[str] = []
    for message in messages:
        for block in message.blocks:
            inside = block.content if isinstance(block, ToolResultBlock) else (block,)
            found += [part.text for part in inside if isinstance(part, TextBlock)]
    return found


async def test_a_new_one_is_created_a_running_one_queues_and_a_resting_one_goes_on_with_its_history(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    tool = StubTool(release=asyncio.Event())
    assert tool.release is not None
    async with engine_harness(tmp_path, CALLS, *REPLIES, tool=tool) as harness:
        conversation = await harness.start("first")
        await tool.started.wait()
        assert isinstance(await conversation.say("second"), Refused)
        assert isinstance(await conversation.queue.add("second"), Accepted)
        tool.release.set()
        await until(lambda: len(harness.provider.requests) == 3 and not is_busy(conversation.state))
        await harness.engine.forget(conversation.id)
        again = await harness.engine.open(conversation.id)
        await run_turn(again, "third")
        messages = await harness.store.messages(conversation.id)
        assert words(messages) == [
            *("first", "ran sleep", "Slept.", "second", "Yes.", "third", "Again."),
        ]
        assert {message.turn_number for message in messages} == {0, 1, 2}
        assert caplog.messages == [
            f"Created new task {conversation.id}",
            f"Reactivating existing task {conversation.id}",
            f"Reactivating existing task {conversation.id}",
        ]


async def test_a_known_id_is_never_created_a_second_time(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("Hello."),))) as harness:
        options = ConversationOptions(harness.cwd, "scripted/main", id="mine")
        conversation = await harness.engine.create(options)
        await run_turn(conversation, "hello")
        with pytest.raises(StorageError, match="The conversation mine already exists"):
            await harness.engine.create(options)
        assert words(await harness.store.messages("mine")) == ["hello", "Hello."]
        with pytest.raises(EngineError, match=r"There is no conversation nobody\. `phoenix conversations list`"):
            await harness.engine.open("nobody")
        with pytest.raises(EngineError, match="There is no conversation nobody"):
            await harness.engine.change("nobody", ConversationChanges(title="somebody"))


async def test_one_that_takes_its_time_to_close_keeps_no_other_from_being_opened(tmp_path: Path) -> None:
    tool = StubTool(release=asyncio.Event(), dying=asyncio.Event())
    asks = Reply((ScriptedCall("bash", '{"command": "make"}'),))
    async with engine_harness(tmp_path, asks, tool=tool) as harness:
        slow, other = await harness.conversation(), await harness.conversation()
        await harness.engine.forget(other.id)
        await slow.say("begin")
        await tool.started.wait()
        closing = asyncio.create_task(harness.engine.forget(slow.id))
        await until(lambda: tool.stopped)
        again = asyncio.create_task(harness.engine.open(slow.id))
        assert (await harness.engine.open(other.id)).id == other.id
        assert not again.done()
        assert tool.dying is not None
        tool.dying.set()
        await closing
        assert (await again) is not slow


async def test_one_that_is_created_but_not_started_waits_with_its_draft(tmp_path: Path) -> None:
    async with engine_harness(tmp_path) as harness:
        conversation = await harness.engine.create(ConversationOptions(harness.cwd, "scripted/main", "later"))
        await conversation.change(ConversationChanges(draft="what to do"))
        await harness.engine.forget(conversation.id)
        (row,) = await harness.engine.list()
        assert (row.title, row.state_name, row.has_draft, row.message_count) == ("later", "idle", True, 0)
        assert harness.provider.requests == []


async def test_a_sub_agent_is_created_reads_on_while_it_works_and_is_reactivated_with_its_history(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    tool = StubTool(release=asyncio.Event())
    assert tool.release is not None
    spawn = '{"task_description": "look", "initial_prompt": "TASK one"}'
    async with engine_harness(
        tmp_path,
        Reply((ScriptedCall("submit_result", '{"result": "third"}', "r2"),), when="and once more"),
        Reply((ScriptedCall("submit_result", '{"result": "second"}', "r1"),), when="look there too"),
        Reply((ScriptedCall("bash", '{"command": "sleep"}', "b1"),), when="TASK one"),
        Reply((ScriptedCall("spawn_task", spawn, "s1"),), when="begin"),
        Reply((Text("ok"),), always=True),
        tool=tool,
    ) as harness:
        parent = await harness.start("begin")
        await tool.started.wait()
        agent_id = (await harness.store.agents.rows(parent.id))[0].id
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        await sub_agents.hint(agent_id, "look there too")
        tool.release.set()
        await ended(harness, agent_id, parent.id, "second")
        await sub_agents.hint(agent_id, "and once more")
        await ended(harness, agent_id, parent.id, "third")
        said = words(await harness.store.messages(agent_id))
        assert said[0] == "TASK one"
        assert [one for one in said if one in {"TASK one", "ran sleep", "look there too", "and once more"}] == [
            "TASK one",
            "ran sleep",
            "look there too",
            "and once more",
        ]
        assert [message for message in caplog.messages if agent_id in message] == [
            f"Created new task {agent_id}",
            f"Resuming existing task {agent_id}",
            f"Reactivating existing task {agent_id}",
        ]


async def ended(harness: EngineHarness, agent_id: str, parent_id: str, result: str) -> None:
    """Wait until a sub-agent has ended with this and its parent rests."""
    sub_agents = harness.engine.sub_agents
    assert sub_agents is not None

    def has_result() -> bool:
        views = {view.id: view for view in sub_agents.views(parent_id)}
        outcome = views[agent_id].outcome
        return outcome is not None and outcome.text == result and not sub_agents.at_work(parent_id)

    await until(has_result)


async def test_the_run_of_a_sub_agent_is_stored_with_its_limits_and_the_run_it_works_for(tmp_path: Path) -> None:
    tasks = '{"tasks": [{"task": "TASK one", "priority": "high", "timeout": 12.5, "profile": "review"}]}'
    async with engine_harness(
        tmp_path,
        Reply((ScriptedCall("submit_result", '{"result": "42"}', "r1"),), when="TASK one"),
        Reply((ScriptedCall("spawn_agents", tasks, "s1"),), when="begin"),
        Reply((Text("Done."),), when="Sub-agent results"),
    ) as harness:
        await harness.run("begin")
        sql = "SELECT id, type, priority, timeout_ms, parent_run_id FROM runs ORDER BY rowid"
        own, agents = query(harness.store.path, sql)
        assert own[1:] == ("general", "normal", 0, None)  # no limit
        assert agents[1:] == ("code_review", "high", 12_500, own[0])
