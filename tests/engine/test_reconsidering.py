"""A new mode or sandbox decides the open question again (docs/decisions/answering-keys.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import Role, text_in
from engine.machine.states import AwaitingApproval, Idle
from engine.ports import ConversationChanges
from engine.records import PermissionMode
from engine.updates import ApprovalAsked
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tools.contract import JsonObject, SandboxMode, ToolClass, ToolRequest

DONE = Reply((Text("done"),))
AT_ONCE = EngineSettings(mode_rest=0.0)
EDIT = "write_file"


@asynccontextmanager
async def asking(
    folder: Path, tool: StubTool | None = None, settings: EngineSettings = AT_ONCE
) -> AsyncIterator[tuple[EngineHarness, Conversation]]:
    tool = tool or StubTool(EDIT, ToolClass.EDIT)
    reply = Reply((ScriptedCall(tool.name, '{"command": "ls"}', "t1"),))
    async with engine_harness(folder, reply, DONE, DONE, tool=tool, settings=settings) as harness:
        conversation = await harness.conversation(PermissionMode.ASK)
        await conversation.say("do it")
        await until(lambda: isinstance(conversation.state, AwaitingApproval))
        yield harness, conversation


async def notices(harness: EngineHarness, conversation: Conversation) -> list[str]:
    rows = await harness.store.messages(conversation.id)
    return [text_in(row.blocks) for row in rows if row.role is Role.SYSTEM]


async def result(harness: EngineHarness, conversation: Conversation) -> str:
    rows = await harness.store.messages(conversation.id)
    (call,) = await harness.store.tool_calls(conversation.id, [row.id for row in rows])
    return call.output_text


def mode(one: PermissionMode) -> ConversationChanges:
    return ConversationChanges(permission_mode=one)


@pytest.mark.parametrize("allows", [PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO])
async def test_a_mode_that_allows_the_call_answers_and_a_row_says_so(tmp_path: Path, allows: PermissionMode) -> None:
    async with asking(tmp_path) as (harness, conversation):
        await conversation.change(mode(allows))
        await until(lambda: isinstance(conversation.state, Idle))
        assert len(harness.tool.calls) == 1
        assert await notices(harness, conversation) == [f"{EDIT} ls: allowed by mode {allows.value}"]
        assert harness.seen(ApprovalAsked)[-1].question is None


@pytest.mark.parametrize("refuses", [PermissionMode.PLAN, PermissionMode.DENY])
async def test_a_mode_that_refuses_it_tells_the_model(tmp_path: Path, refuses: PermissionMode) -> None:
    async with asking(tmp_path) as (harness, conversation):
        await conversation.change(mode(refuses))
        await until(lambda: isinstance(conversation.state, Idle))
        assert harness.tool.calls == []
        assert await notices(harness, conversation) == []  # its result says it
        assert await result(harness, conversation) == f"Permission mode '{refuses.value}' does not allow {EDIT}."


async def test_what_still_asks_stays_open_with_the_reason_that_is_true_now(tmp_path: Path) -> None:
    async with asking(tmp_path, StubTool()) as (harness, conversation):
        asked = len(harness.seen(ApprovalAsked))
        await conversation.change(mode(PermissionMode.ACCEPT_EDITS))
        await until(lambda: len(harness.seen(ApprovalAsked)) > asked)
        question = conversation.question
        assert question is not None
        assert question.reason.startswith("in accept-edits mode, commands need approval")
        assert isinstance(conversation.state, AwaitingApproval)
        assert conversation.state.reason == question.reason
        assert [one.question for one in harness.seen(ApprovalAsked)[asked:]] == [question], (
            "it was not taken away in between"
        )
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.ONCE))
        await until(lambda: isinstance(conversation.state, Idle))
        assert len(harness.tool.calls) == 1, "the yes is for the question as it stands"


async def test_a_sandbox_that_refuses_edits_refuses_the_open_one(tmp_path: Path) -> None:
    async with asking(tmp_path) as (harness, conversation):
        await conversation.change(ConversationChanges(sandbox=SandboxMode.READ_ONLY))
        await until(lambda: isinstance(conversation.state, Idle))
        assert harness.tool.calls == []
        assert await notices(harness, conversation) == []
        assert "The sandbox of this conversation is read-only" in await result(harness, conversation)


async def test_another_sandbox_asks_another_question(tmp_path: Path) -> None:
    async with asking(tmp_path, StubTool()) as (harness, conversation):
        before = conversation.question
        await conversation.change(ConversationChanges(sandbox=SandboxMode.OFF))
        await until(lambda: conversation.question not in {None, before})
        assert ApprovalAsked(None) in harness.seen(ApprovalAsked), "it was shown anew"
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.ONCE))
        await until(lambda: isinstance(conversation.state, Idle))
        assert len(harness.tool.calls) == 1


async def test_modes_that_are_passed_by_answer_nothing(tmp_path: Path) -> None:
    """Shift+Tab from ask to ask again leads over auto and plan."""
    passing = (PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO, PermissionMode.PLAN, PermissionMode.ASK)
    async with asking(tmp_path, settings=EngineSettings(mode_rest=0.05)) as (harness, conversation):
        question = conversation.question
        for one in passing:
            await conversation.change(mode(one))
        assert conversation.reconsidering._timer is not None
        await until(lambda: conversation.reconsidering._timer is None)
        await conversation._session.finish_background()
        assert (conversation.question, harness.tool.calls) == (question, [])


class Moving(StubTool):
    """A tool whose call leads elsewhere each time it is looked at."""

    looked = 0

    async def request(self, args: JsonObject, working_dir: Path) -> ToolRequest:
        self.looked += 1
        return ToolRequest("ls", (working_dir / f"{self.looked}",))


async def test_a_question_whose_facts_changed_is_asked_anew(tmp_path: Path) -> None:
    """SECURITY V7: a new mode does not approve an unshown request."""
    async with asking(tmp_path, Moving()) as (harness, conversation):
        before = conversation.question
        await conversation.change(mode(PermissionMode.ACCEPT_EDITS))
        await until(lambda: conversation.question not in {None, before})
        assert ApprovalAsked(None) in harness.seen(ApprovalAsked)
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.ONCE))
        await until(
            lambda: conversation.question is not None and "changed after your approval" in conversation.question.reason
        )
        assert harness.tool.calls == []


async def test_an_answer_that_came_first_counts(tmp_path: Path) -> None:
    async with asking(tmp_path, settings=EngineSettings(mode_rest=0.05)) as (harness, conversation):
        await conversation.change(mode(PermissionMode.ACCEPT_EDITS))
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.DENY, "not there"))
        await until(lambda: isinstance(conversation.state, Idle))
        assert harness.tool.calls == []
        assert cast(Any, conversation.reconsidering)._session.question is None
