"""Plan mode: the plan is asked about, its answer changes mode, context and record in one move."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.context.assemble import SUMMARY
from engine.context.prompt import PLAN, PLANNING
from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, PlanChoice, Refused
from engine.executor.todo_lists import FRESH
from engine.machine.messages import Role, TextBlock, ToolResultBlock
from engine.machine.states import AwaitingApproval, Idle
from engine.ports import ConversationChanges, ModelRequest
from engine.records import PermissionMode
from engine.store import StorePaths, open_store
from engine.updates import RunEnded
from tests.engine.test_storage_trouble import break_after
from tests.support.engine import EngineHarness, StubTool, engine_harness, run_turn, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import ToolClass
from tools.planning import ExitPlan

TEXT = "# Bound the delay\n\n1. Read `retry.py`\n2. Change it"
QUIET = EngineSettings(auto_title=False, turn_summaries=False)
DONE = Reply((Text("Done."),))
ASKS = "exit_plan"


def proposes(plan: str = TEXT, *more: ScriptedCall) -> Reply:
    return Reply((ScriptedCall(ASKS, json.dumps({"plan": plan})), *more))


EDITS = ScriptedCall("write_file", '{"command": "edit"}')


@asynccontextmanager
async def asked(home: Path, *replies: Reply) -> AsyncIterator[tuple[EngineHarness, Conversation]]:
    """A conversation in plan mode whose plan waits for an answer."""
    tool = StubTool("write_file", ToolClass.EDIT)
    async with engine_harness(home, *replies, tool=tool, tools=[ExitPlan()], settings=QUIET) as harness:
        conversation = await harness.start("plan it", PermissionMode.PLAN)
        await until(lambda: conversation.question)
        yield harness, conversation


async def answered(conversation: Conversation, choice: PlanChoice, **fields: Any) -> None:
    question = conversation.question
    assert question is not None
    given = ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=choice, **fields)
    assert await conversation.answer(question.call.id, given) == Accepted()
    await conversation.wait_idle()


def results(request: ModelRequest) -> list[tuple[str, bool]]:
    """Text and failure of each tool result at the end of a request."""
    blocks = [block for block in request.messages[-1].blocks if isinstance(block, ToolResultBlock)]
    return [("".join(b.text for b in one.content if isinstance(b, TextBlock)), one.is_error) for one in blocks]


async def test_the_tool_is_offered_in_plan_mode_alone_and_the_prompt_says_how_it_ends(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, DONE, DONE, tools=[ExitPlan()], settings=QUIET) as harness:
        conversation = await harness.run("go", PermissionMode.PLAN)
        await conversation.change(ConversationChanges(permission_mode=PermissionMode.ASK))
        await run_turn(conversation, "go")
        planning, asking = harness.provider.requests
        assert [ASKS in [tool.name for tool in one.tools] for one in (planning, asking)] == [True, False]
        assert [PLANNING in one.system[-1] for one in (planning, asking)] == [True, False]
        assert planning.system[0] == asking.system[0], "the part that is cached stays the same"


@pytest.mark.parametrize(
    ("choice", "mode"),
    [(PlanChoice.ACCEPT_EDITS, PermissionMode.ACCEPT_EDITS), (PlanChoice.ASK, PermissionMode.ASK)],
)
async def test_an_accepted_plan_changes_the_mode_and_is_kept(
    tmp_path: Path, choice: PlanChoice, mode: PermissionMode
) -> None:
    async with asked(tmp_path, proposes(), DONE) as (harness, conversation):
        assert isinstance(conversation.state, AwaitingApproval)
        assert conversation.question is not None
        assert conversation.question.request.plan == TEXT
        assert conversation.record.plan == ""
        await answered(conversation, choice)
        assert results(harness.provider.requests[-1]) == [
            (f"The user approved the plan. The permission mode is now {mode.value}: carry the plan out.", False)
        ]
        record = conversation.record
        assert (record.permission_mode, record.plan) == (mode, TEXT)
        assert ASKS in [tool.name for tool in harness.provider.requests[-1].tools], "the cached tools stay the same"
    store = await open_store(StorePaths.under(tmp_path))
    stored = await store.conversation(conversation.id)
    await store.close()
    assert stored is not None
    assert stored.record == record or (stored.plan, stored.permission_mode) == (TEXT, mode)


async def test_calls_behind_an_accepted_plan_run_under_the_new_mode(tmp_path: Path) -> None:
    async with asked(tmp_path, proposes(TEXT, EDITS), DONE) as (harness, conversation):
        await answered(conversation, PlanChoice.ACCEPT_EDITS)
        assert len(harness.tool.calls) == 1


async def test_an_edited_plan_is_given_back_with_the_result(tmp_path: Path) -> None:
    async with asked(tmp_path, proposes(), DONE) as (harness, conversation):
        await answered(conversation, PlanChoice.ASK, plan="# Mine\n\nless")
        assert results(harness.provider.requests[-1]) == [
            (
                "The user approved the plan. The permission mode is now ask: carry the plan out. "
                "The user changed it; this is what holds:\n\n# Mine\n\nless",
                False,
            )
        ]
        assert conversation.record.plan == "# Mine\n\nless"


async def test_remarks_go_back_to_the_model_and_plan_mode_stays(tmp_path: Path) -> None:
    async with asked(tmp_path, proposes(), proposes("# Other"), DONE) as (harness, conversation):
        question = conversation.question
        assert question is not None
        await conversation.answer(question.call.id, ApprovalAnswer(ApprovalChoice.DENY, reason=" add tests "))
        await until(lambda: conversation.question is not None and conversation.question.request.plan == "# Other")
        assert results(harness.provider.requests[-1]) == [
            (
                "The user wants another plan. Stay in plan mode, revise it and call exit_plan again: add tests",
                False,
            )
        ]
        assert (conversation.record.permission_mode, conversation.record.plan) == (PermissionMode.PLAN, "")
        await answered(conversation, PlanChoice.ASK)
        assert conversation.record.plan == "# Other"


async def test_a_plan_that_is_left_is_denied_and_plan_mode_stays(tmp_path: Path) -> None:
    async with asked(tmp_path, proposes(), DONE) as (harness, conversation):
        await answered(conversation, PlanChoice.LEAVE)
        assert results(harness.provider.requests[-1]) == [("User denied permission to run exit_plan.", True)]
        assert (conversation.record.permission_mode, conversation.record.plan) == (PermissionMode.PLAN, "")


async def test_a_plain_yes_asks_before_each_change(tmp_path: Path) -> None:
    async with asked(tmp_path, proposes(), DONE) as (_, conversation):
        question = conversation.question
        assert question is not None
        await conversation.answer(question.call.id, ApprovalAnswer(ApprovalChoice.ALWAYS))
        await conversation.wait_idle()
        assert conversation.record.permission_mode is PermissionMode.ASK
        assert not conversation.rules


async def test_answers_that_cannot_be_taken_say_why_and_the_question_stays(tmp_path: Path) -> None:
    async with asked(tmp_path, proposes()) as (_, conversation):
        question = conversation.question
        assert question is not None
        for given, why in (
            (ApprovalAnswer(ApprovalChoice.DENY, plan_choice=PlanChoice.REVISE), "Say what should be different"),
            (ApprovalAnswer(ApprovalChoice.ONCE, plan="x" * 32_769), "The plan has 32,769 bytes"),
            (ApprovalAnswer(ApprovalChoice.ONCE, plan=" \n"), "The plan is empty"),
        ):
            receipt = await conversation.answer(question.call.id, given)
            assert isinstance(receipt, Refused)
            assert receipt.reason.startswith(why)
        assert conversation.question == question


async def test_a_fresh_context_holds_the_plan_alone_and_can_be_restored(tmp_path: Path) -> None:
    skipped = ScriptedCall("write_file", '{"command": "edit"}')
    async with asked(tmp_path, proposes(TEXT, skipped), DONE, DONE) as (harness, conversation):
        await answered(conversation, PlanChoice.FRESH)
        assert harness.tool.calls == []
        request = harness.provider.requests[-1]
        assert request.messages[0].blocks == (TextBlock(SUMMARY + FRESH + PLAN.format(plan=TEXT)),)
        assert "plan it" not in str(request.messages)
        assert [message.role for message in request.messages] == [Role.USER, Role.ASSISTANT, Role.USER]
        assert conversation.record.permission_mode is PermissionMode.ACCEPT_EDITS
        await run_turn(conversation, "on")
        later = harness.provider.requests[-1]
        assert later.messages[0] == request.messages[0]
        rows = await harness.store.messages(conversation.id)
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        await conversation.context.restore()
        assert conversation.record.summary == ""


async def test_a_plan_outlives_a_summary_of_the_messages_that_show_it(tmp_path: Path) -> None:
    words = Reply((Text("word " * 200),))
    async with asked(tmp_path, proposes(), *[words] * 8) as (harness, conversation):
        await answered(conversation, PlanChoice.ASK)
        for text in ("two", "three", "four", "five"):
            await run_turn(conversation, text)
        await conversation.context.compact()
        await conversation.wait_idle()
        assert PLAN.format(plan=TEXT) not in conversation.record.summary
        for text in ("six", "seven"):
            await run_turn(conversation, text)
        before, after = harness.provider.requests[-2:]
        first = before.messages[0].blocks[0]
        assert isinstance(first, TextBlock)
        assert first.text.endswith(PLAN.format(plan=TEXT))
        assert after.messages[0] == before.messages[0]


async def test_an_answer_that_cannot_be_stored_changes_neither_mode_nor_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asked(tmp_path, proposes(), DONE) as (harness, conversation):
        question = conversation.question
        assert question is not None
        break_after(harness, monkeypatch, 0)
        receipt = await conversation.answer(question.call.id, ApprovalAnswer(ApprovalChoice.ONCE))
        assert isinstance(receipt, Refused)
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        for record in (stored, conversation.record):
            assert (record.permission_mode, record.plan) == (PermissionMode.PLAN, "")


async def test_a_delivered_plan_ends_the_run_well_with_the_plan_as_its_answer(tmp_path: Path) -> None:
    async with asked(tmp_path, proposes(TEXT, EDITS), DONE) as (harness, conversation):
        await answered(conversation, PlanChoice.DELIVER)
        assert isinstance(conversation.state, Idle)
        assert len(harness.provider.requests) == 1
        assert [ended.status for ended in harness.seen(RunEnded)] == ["success"]
        last = (await harness.store.messages(conversation.id))[-1]
        assert (last.role, last.blocks) == (Role.ASSISTANT, (TextBlock(TEXT),))
        assert conversation.record.permission_mode is PermissionMode.PLAN
        await run_turn(conversation, "on")
        assert isinstance(conversation.state, Idle)


async def test_a_mode_that_is_changed_while_the_plan_waits_acknowledges_it(tmp_path: Path) -> None:
    settings = EngineSettings(auto_title=False, turn_summaries=False, mode_rest=0.01)
    async with engine_harness(tmp_path, proposes(), DONE, tools=[ExitPlan()], settings=settings) as harness:
        conversation = await harness.start("plan it", PermissionMode.PLAN)
        await until(lambda: conversation.question)
        await conversation.change(ConversationChanges(permission_mode=PermissionMode.AUTO))
        await conversation.wait_idle()
        assert results(harness.provider.requests[-1]) == [
            ("Plan mode is off, so this plan needs no approval. Go on with the work.", False)
        ]


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        ("", "exit_plan: The plan is empty: write what you will do, step by step."),
        ("x" * 40_000, "exit_plan: The plan has 40,000 bytes; at most 32,768 are taken: leave out details."),
    ],
)
async def test_a_plan_that_is_none_is_answered_with_the_reason(tmp_path: Path, plan: str, text: str) -> None:
    async with engine_harness(tmp_path, proposes(plan), DONE, tools=[ExitPlan()], settings=QUIET) as harness:
        await harness.run("plan it", PermissionMode.PLAN)
        assert results(harness.provider.requests[-1]) == [(text, True)]


async def test_a_restart_ends_the_question_and_a_copy_up_to_before_it_has_no_plan(tmp_path: Path) -> None:
    async with asked(tmp_path, proposes(), DONE) as (harness, conversation):
        await answered(conversation, PlanChoice.ASK)
        library = harness.store.library
        whole = await library.fork(conversation.id, "whole", 5.0)
        before = await library.fork(conversation.id, "before", 5.0, 1)
        assert (whole.plan, before.plan) == (TEXT, "")


async def test_a_sub_agent_has_no_plan_to_hand_over(tmp_path: Path) -> None:
    spawns = Reply((ScriptedCall("spawn_agents", json.dumps({"tasks": [{"task": "TASK one"}]})),), when="begin")
    tries = Reply((ScriptedCall(ASKS, json.dumps({"plan": TEXT})),), when="TASK one")
    submits = Reply((ScriptedCall("submit_result", '{"result": "first"}'),), when="no such tool")
    done = Reply((Text("Done."),), when="first")
    async with engine_harness(tmp_path, spawns, tries, submits, done, tools=[ExitPlan()], settings=QUIET) as harness:
        options = ConversationOptions(harness.cwd, "scripted/main", permission_mode=PermissionMode.AUTO)
        conversation = await harness.engine.create(options)
        await run_turn(conversation, "begin")
        offered = [ASKS in [tool.name for tool in one.tools] for one in harness.provider.requests]
        assert not any(offered)
