"""Ends of sub-agents: stored and delivered once, when a parent learns of them, and updates of screens about agents."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.agents.manager import SubAgents
from engine.conversation import Conversation
from engine.executor.requests import Activity, ApprovalAnswer, ApprovalChoice
from engine.machine.agent_texts import SUBMITTED
from engine.machine.effects import FinishRun, RunStatus, StartRun
from engine.machine.messages import NewMessage, Origin, Role, TextBlock, ToolCall, ToolUseBlock, Usage
from engine.machine.states import AgentTask, AwaitingSubagents, Compacting, Completed, Failed, Idle, Run, ToolRound
from engine.ports import AppendMessage, Committed, ConversationChanges, Move, StorageError
from engine.records import AgentFacts, NewConversation, PermissionMode, SpawnMode, StoredMessage
from engine.store import Store, StorePaths, open_store
from engine.updates import AgentsChanged, MessageSaved, ToolEnded, Update
from tests.support.engine import EngineHarness, engine_harness, run_turn, until
from tests.support.fates import words
from tests.support.gates import Gates
from tests.support.scripted_provider import Pause, Reply, Script, ScriptedCall, ScriptedProvider, Text
from tests.support.storage import asking, move, new_conversation, new_id, reply


async def family(store: Store, mode: SpawnMode) -> tuple[str, str]:
    """A parent and its sub-agent, both owned by this process."""
    parent = (await store.create(new_conversation(), 1.0)).id
    facts = AgentFacts(parent, mode, "t1", 1, "look")
    (agent,) = await store.agents.create_all([NewConversation(new_id(), Path("/tmp"), "demo/guide", agent=facts)], 1.0)
    return parent, agent.id


def notice(text: str) -> AppendMessage:
    return AppendMessage(NewMessage(new_id(), Role.SYSTEM, Origin.NOTICE, (TextBlock(text),)))


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    return StorePaths.under(tmp_path / "phoenix")


async def test_a_notice_after_the_end_is_no_second_end(paths: StorePaths) -> None:
    store = await open_store(paths)
    parent, agent = await family(store, SpawnMode.BACKGROUND)
    await store.commit(move(agent, state=Failed(2, "cancelled", "cancelled")))
    await store.commit(move(agent, notice("3 processes ended late"), state=Failed(2, "cancelled", "cancelled")))
    assert await store.agents.waiting(parent) == 1
    await store.close()


@pytest.mark.parametrize(
    ("state", "wakes"),
    [
        (Completed(2, "found"), True),
        (Failed(2, "timeout", "timed out"), True),
        (Failed(2, "cancelled", "cancelled"), False),
    ],
)
async def test_the_end_of_one_that_was_stopped_wakes_nobody(
    paths: StorePaths, state: Completed | Failed, wakes: bool
) -> None:
    store = await open_store(paths)
    parent, agent = await family(store, SpawnMode.BACKGROUND)
    await store.commit(move(agent, state=state))
    assert (await store.agents.waiting(parent), await store.agents.wakes(parent)) == (1, wakes)
    await store.commit(move(agent, state=Idle(3)))
    await store.commit(move(agent, state=Failed(4, "cancelled", "cancelled")))
    assert (await store.agents.waiting(parent), await store.agents.wakes(parent)) == (2, wakes), "each as it ended"
    await store.close()


async def test_whoever_takes_over_a_parent_finds_its_agents_at_rest(paths: StorePaths, tmp_path: Path) -> None:
    store = await open_store(paths)
    parent, agent = await family(store, SpawnMode.FAN_IN)
    call = ToolCall("t1", "spawn_agents", "{}")
    waiting = AwaitingSubagents(2, Run("r", 250), ToolRound("m", call), (AgentTask(agent, "look"),))
    await store.commit(move(parent, state=waiting))
    left = StorePaths.under(tmp_path / "left")
    shutil.copytree(store.path.parent, left.database.parent, ignore=shutil.ignore_patterns("*.lock"))
    await store.close()
    after = await open_store(left)
    await after.take(parent)
    row = await after.agents.row(agent)
    assert row is not None
    assert row.state == Failed(1, "interrupted", "interrupted")
    record = await after.conversation(parent)
    assert record is not None
    assert record.state == Idle(3)
    await after.close()


async def test_one_that_never_began_has_ended_at_the_next_start(paths: StorePaths) -> None:
    store = await open_store(paths)
    _, agent = await family(store, SpawnMode.FAN_IN)
    await store.close()
    after = await open_store(paths)
    await after.recover_all()
    row = await after.agents.row(agent)
    assert row is not None
    assert row.outcome is not None
    assert row.outcome.reason == "interrupted"
    assert await after.agents.waiting(agent) == 1, "its task, for when it is told to go on"
    assert await after.recover_all() == []
    await after.close()


async def test_what_is_kept_of_a_failure_is_of_its_last_run(paths: StorePaths) -> None:
    store = await open_store(paths)
    _, agent = await family(store, SpawnMode.BACKGROUND)
    first, second = new_id(), new_id()
    await store.commit(move(agent, StartRun(first), state=asking(first)))
    said = reply(TextBlock("early words"), run_id=first)
    ended = FinishRun(first, RunStatus.SUCCESS, 1)
    await store.commit(move(agent, said, ended, state=Completed(2, "found")))
    await store.commit(move(agent, StartRun(second), state=asking(second, 3)))
    stopped = FinishRun(second, RunStatus.CANCELLED, 1)
    await store.commit(move(agent, stopped, state=Failed(4, "cancelled", "cancelled")))
    row = await store.agents.row(agent)
    assert row is not None
    assert row.outcome is not None
    assert (row.outcome.text, row.outcome.reason) == ("", "cancelled")
    await store.close()


BACKGROUND = json.dumps({"task_description": "look", "initial_prompt": "TASK one"})
AGENT, SUMMARY = 1.0, 2.0
"""The pauses that the two wait in."""
REPLIES = (
    Reply((Pause(SUMMARY), Text("the plan is kept")), when="Write the summary now."),
    *(Reply((Text("word " * 200),), when="[go]") for _ in range(3)),
    Reply((Text("I see."),), when="[SYSTEM]"),
    Reply((Text("Started."),), when=" started"),
    Reply((Pause(AGENT), ScriptedCall("submit_result", '{"result": "found"}')), when="TASK one"),
    Reply((ScriptedCall("spawn_task", BACKGROUND),), when="begin"),
)


async def told(harness: EngineHarness, parent_id: str) -> list[str]:
    """Text behind the end of the sub-agent in its parent."""
    messages = await harness.store.messages(parent_id)
    places = [place for place, one in enumerate(messages) if one.origin is Origin.COMPLETION]
    return [words(one.blocks) for one in messages[places[0] + 1 :]] if places else []


@asynccontextmanager
async def one_back_while_compacting(home: Path) -> AsyncIterator[tuple[EngineHarness, Conversation, SubAgents, Gates]]:
    """The user has the window summarized, and meanwhile the sub-agent has ended."""
    gates = Gates()
    provider = ScriptedProvider({"main": Script(REPLIES)}, gates.wait)
    async with engine_harness(home, provider=provider) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent = await harness.conversation()
        for text in ("[go] 1", "[go] 2", "[go] 3", "begin"):
            await run_turn(parent, text)
        await parent.context.compact()
        gates[AGENT].set()
        await sub_agents.wait_finished(parent.id)
        assert (isinstance(parent.state, Compacting), sub_agents.results(parent.id)) == (True, 1)
        yield harness, parent, sub_agents, gates


async def test_what_comes_back_while_the_user_has_the_window_summarized_is_read_behind_it(tmp_path: Path) -> None:
    async with one_back_while_compacting(tmp_path) as (harness, parent, sub_agents, gates):
        gates[SUMMARY].set()
        await until(lambda: sub_agents.results(parent.id) == 0)
        await parent.wait_idle()
        assert await told(harness, parent.id) == ["I see."]


async def test_one_whose_end_could_not_be_stored_wakes_its_parent_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = Gates()
    provider = ScriptedProvider({"main": Script(REPLIES)}, gates.wait)
    async with engine_harness(tmp_path, provider=provider) as harness:
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        parent = await harness.run("begin")
        commit, failures = harness.store.commit, [StorageError("The disk is full.")]

        async def once_full(move: Move) -> Committed:
            if move.conversation_id != parent.id and failures:
                raise failures.pop()
            return await commit(move)

        monkeypatch.setattr(harness.store, "commit", once_full)
        gates[AGENT].set()
        await sub_agents.wait_finished(parent.id)
        await parent.wait_idle()
        assert failures == []
        assert await told(harness, parent.id) == ["I see."]
        (row,) = await harness.store.agents.rows(parent.id)
        assert (row.outcome and row.outcome.reason, row.state.gen) == ("interrupted", 4)  # the call of it, too


async def test_after_esc_it_waits_for_the_user(tmp_path: Path) -> None:
    async with one_back_while_compacting(tmp_path) as (harness, parent, sub_agents, _):
        parent.cancel()
        await parent.wait_idle()
        await sub_agents.wait_finished(parent.id)
        assert (isinstance(parent.state, Idle), sub_agents.results(parent.id)) == (True, 1)
        await run_turn(parent, "and now")
        assert await told(harness, parent.id) == ["I see."]


SPAWNS = Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "TASK one"}]}'),), when="begin")
SPAWNS_TASK = Reply(
    (ScriptedCall("spawn_task", '{"task_description": "look", "initial_prompt": "TASK one"}'),), when="begin"
)
DONE = Reply((Text("Both are back."),), when="Sub-agent results")


async def test_a_question_names_the_sub_agent_and_whose_it_is_and_the_list_is_told(tmp_path: Path) -> None:
    runs = ScriptedCall("bash", '{"command": "make"}')
    submits = Reply((ScriptedCall("submit_result", '{"result": "made"}'),), when="ran make")
    replies = (SPAWNS, submits, Reply((runs,), when="TASK one"), DONE)
    told: list[Activity] = []
    async with engine_harness(tmp_path, *replies) as harness:
        parent = await harness.conversation(PermissionMode.ASK)
        await parent.change(ConversationChanges(title="api-retry"))
        open_when_told: list[bool] = []

        def hear(activity: Activity) -> None:
            told.append(activity)
            if activity.agents_asking and not open_when_told:
                open_when_told.append(any(one.question for one in harness.engine.live() if one.record.agent))

        harness.engine.watch(hear)
        await parent.say("begin")
        await until(lambda: parent.question is not None)
        assert parent.question is not None
        await parent.answer(parent.question.call.id, ApprovalAnswer(ApprovalChoice.ONCE))
        await until(lambda: isinstance(parent.state, AwaitingSubagents))
        await until(lambda: any(one.question for one in harness.engine.live()))
        (child,) = [one for one in harness.engine.live() if one.question is not None]
        assert child.question is not None
        assert child.question.asker == "TASK one (sub-agent of api-retry)"
        await until(lambda: told[-1].agents_asking == 1)
        assert open_when_told == [True], "whoever is told of a question finds it"
        assert (told[-1].summary.id, told[-1].agents, told[-1].needs_you) == (parent.id, 1, True)
        await child.answer(child.question.call.id, ApprovalAnswer(ApprovalChoice.ONCE))
        await parent.wait_idle()
        assert (told[-1].agents, told[-1].agents_asking, told[-1].needs_you) == (0, 0, False)
        assert harness.tool.calls == [{"command": "make"}]


async def test_one_that_the_user_stops_does_not_wake_its_parent_and_its_end_waits(tmp_path: Path) -> None:
    slow = Reply((Pause(60.0),), when="TASK one", always=True)
    after = Reply((Text("I see."),), when="and now")
    async with engine_harness(
        tmp_path, SPAWNS_TASK, Reply((Text("Started."),), when=" started"), slow, after
    ) as harness:
        parent = await harness.run("begin")
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        assert sub_agents.at_work(parent.id) == 1
        sub_agents.stop_all(parent.id)
        await sub_agents.wait_finished(parent.id)
        assert isinstance(parent.state, Idle)
        assert (harness.seen(AgentsChanged)[-1].results, sub_agents.results(parent.id)) == (1, 1)
        await run_turn(parent, "and now")
        await until(lambda: sub_agents.results(parent.id) == 0)
        told = [words_of(message) for message in await harness.store.messages(parent.id)]
        assert sum("has failed: cancelled" in text for text in told) == 1


async def test_its_tokens_are_those_of_all_its_requests_at_work_ended_and_after_a_restart(tmp_path: Path) -> None:
    used = Usage(10, 5, cache_creation_tokens=3, cache_read_tokens=2)
    works = Reply((ScriptedCall("bash", '{"command": "make"}'),), usage=used, when="TASK one")
    submits = Reply((ScriptedCall("submit_result", '{"result": "made"}'),), usage=used, when="ran make")
    async with engine_harness(tmp_path, SPAWNS, submits, works, DONE) as harness:
        parent = await harness.run("begin")
        shown = [view.tokens for told in harness.seen(AgentsChanged) for view in told.agents]
        assert list(dict.fromkeys(shown)) == [0, 20, 40]
        assert harness.seen(AgentsChanged)[-1].agents[0].turn == 2
        (run,) = await harness.store.library.runs(parent.id, 1)
        assert run.agents is not None
        assert run.agents.tokens == 40
    again = Reply((ScriptedCall("submit_result", '{"result": "more"}'),), when="again")
    async with engine_harness(tmp_path, again) as harness:
        await harness.engine.open(parent.id)
        assert harness.engine.sub_agents is not None
        assert [(view.tokens, view.turn) for view in harness.engine.sub_agents.views(parent.id)] == [(40, 2)]
        (child,) = harness.engine.sub_agents.views(parent.id)
        await harness.engine.sub_agents.hint(child.id, "again")
        await harness.engine.sub_agents.wait_finished(parent.id)
        assert [(view.tokens, view.turn) for view in harness.engine.sub_agents.views(parent.id)] == [(160, 1)], (
            "of its new run"
        )
    async with engine_harness(tmp_path) as harness:
        await harness.engine.open(parent.id)
        assert harness.engine.sub_agents is not None
        assert [(view.tokens, view.turn) for view in harness.engine.sub_agents.views(parent.id)] == [(160, 1)]


def words_of(message: StoredMessage) -> str:
    return "".join(block.text for block in message.blocks if isinstance(block, TextBlock))


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
        await harness.run("begin")
    assert told == ["submit_result", SUBMITTED]
