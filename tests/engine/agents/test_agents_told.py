"""Updates of screens about sub-agents: questions, work, unread results."""

from __future__ import annotations

from pathlib import Path

from engine.conversation import Conversation
from engine.executor.requests import Activity, ApprovalAnswer, ApprovalChoice
from engine.machine.agent_texts import SUBMITTED
from engine.machine.messages import TextBlock, ToolUseBlock, Usage
from engine.machine.states import AwaitingSubagents, Idle
from engine.ports import ConversationChanges
from engine.records import PermissionMode, StoredMessage
from engine.updates import AgentsChanged, MessageSaved, ToolEnded, Update
from tests.support.engine import engine_harness, until
from tests.support.scripted_provider import Pause, Reply, ScriptedCall, Text

SPAWNS = Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "TASK one"}]}'),), when="begin")
BACKGROUND = Reply(
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
        tmp_path, BACKGROUND, Reply((Text("Started."),), when=" started"), slow, after
    ) as harness:
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
        sub_agents = harness.engine.sub_agents
        assert sub_agents is not None
        assert sub_agents.at_work(parent.id) == 1
        sub_agents.stop_all(parent.id)
        await sub_agents.wait_finished(parent.id)
        assert isinstance(parent.state, Idle)
        assert (harness.seen(AgentsChanged)[-1].results, sub_agents.results(parent.id)) == (1, 1)
        await parent.say("and now")
        await parent.wait_idle()
        await until(lambda: sub_agents.results(parent.id) == 0)
        told = [words_of(message) for message in await harness.store.messages(parent.id)]
        assert sum("has failed: cancelled" in text for text in told) == 1


async def test_its_tokens_are_those_of_all_its_requests_at_work_ended_and_after_a_restart(tmp_path: Path) -> None:
    used = Usage(10, 5, cache_creation_tokens=3, cache_read_tokens=2)
    works = Reply((ScriptedCall("bash", '{"command": "make"}'),), usage=used, when="TASK one")
    submits = Reply((ScriptedCall("submit_result", '{"result": "made"}'),), usage=used, when="ran make")
    async with engine_harness(tmp_path, SPAWNS, submits, works, DONE) as harness:
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
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
        parent = await harness.conversation()
        await parent.say("begin")
        await parent.wait_idle()
    assert told == ["submit_result", SUBMITTED]
