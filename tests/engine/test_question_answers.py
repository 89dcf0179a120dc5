"""`ask_user`: the answers are the result of the call, in every mode but `deny`, and survive the end of Phoenix."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, ApprovalAnswer, ApprovalChoice, Refused
from engine.machine.messages import Origin, Role, TextBlock, ToolResultBlock, text_in
from engine.machine.states import AwaitingApproval, Idle
from engine.ports import ConversationChanges, ModelRequest
from engine.records import PermissionMode
from engine.updates import ApprovalAsked, Question
from tests.support.engine import EngineHarness, StubTool, engine_harness, until
from tests.support.questions import COLOUR, PARTS, asks, call
from tests.support.scripted_provider import Reply, ScriptedCall, Text
from tests.support.waiting import PATIENCE
from tools.contract import JsonObject, SandboxMode, ToolClass, ToolRequest
from tools.displays import LONGEST_ANSWER, Answers
from tools.planning import AskUser

QUIET = EngineSettings(auto_title=False, turn_summaries=False)
DONE = Reply((Text("Done."),))
RED = (("Red",),)


@asynccontextmanager
async def asked(
    home: Path, *replies: Reply, mode: PermissionMode = PermissionMode.ASK
) -> AsyncIterator[tuple[EngineHarness, Conversation]]:
    """A conversation whose questions wait."""
    async with engine_harness(home, *replies, tools=[AskUser()], settings=QUIET) as harness:
        conversation = await harness.start("do it", mode)
        await until(lambda: conversation.question)
        yield harness, conversation


def open_question(conversation: Conversation) -> Question:
    assert conversation.question is not None
    return conversation.question


async def answer(conversation: Conversation, answers: Answers, choice: ApprovalChoice = ApprovalChoice.ONCE) -> object:
    return await conversation.answer(open_question(conversation).call.id, ApprovalAnswer(choice, answers=answers))


def results(request: ModelRequest) -> list[tuple[str, bool]]:
    """Text and failure of each tool result at the end of a request."""
    blocks = [block for block in request.messages[-1].blocks if isinstance(block, ToolResultBlock)]
    return [("".join(b.text for b in one.content if isinstance(b, TextBlock)), one.is_error) for one in blocks]


@pytest.mark.parametrize("mode", [one for one in PermissionMode if one is not PermissionMode.DENY])
async def test_questions_wait_in_every_attended_mode_and_their_answers_are_the_result(
    tmp_path: Path, mode: PermissionMode
) -> None:
    async with asked(tmp_path, asks(COLOUR, PARTS), DONE, mode=mode) as (harness, conversation):
        assert isinstance(conversation.state, AwaitingApproval)
        question = open_question(conversation)
        assert [one.header for one in question.request.questions] == ["Colour", "Parts"]
        assert question.rule == "", "no rule can take the place of the user"
        assert await answer(conversation, (("Red",), ("API", "my own \x1b[2Jpart"))) == Accepted()
        await conversation.wait_idle()
        assert results(harness.provider.requests[-1]) == [
            ('"Which colour?"="Red"\n"Which parts?"="API, my own part"', False)
        ]
        assert conversation.question is None


async def test_nobody_is_asked_in_deny_mode(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, asks(), DONE, tools=[AskUser()], settings=QUIET) as harness:
        await harness.run("do it", PermissionMode.DENY)
        assert results(harness.provider.requests[-1]) == [("Permission mode 'deny' does not allow ask_user.", True)]


async def test_the_tool_is_not_offered_where_no_user_is(tmp_path: Path) -> None:
    settings = EngineSettings(auto_title=False, turn_summaries=False, attended=False)
    async with engine_harness(tmp_path, asks(), DONE, tools=[AskUser()], settings=settings) as harness:
        await harness.run("do it")
        assert "ask_user" not in [tool.name for tool in harness.provider.requests[0].tools]
        [(text, failed)] = results(harness.provider.requests[-1])
        assert text.startswith("ask_user: no such tool. There are: bash,")
        assert failed


async def test_a_skipped_question_is_not_answered(tmp_path: Path) -> None:
    async with asked(tmp_path, asks(COLOUR, PARTS), DONE) as (harness, conversation):
        await answer(conversation, ((), ("Docs",)))
        await conversation.wait_idle()
        assert results(harness.provider.requests[-1]) == [
            ('"Which colour?"="not answered"\n"Which parts?"="Docs"', False)
        ]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((), "Choose an answer first, or decline to answer."),
        (((), ()), "Choose an answer first, or decline to answer."),
        ((("  ",), ("",)), "Choose an answer first, or decline to answer."),
        ((("Red",),), "There are 2 questions and 1 answer."),
        ((("Red", "Blue"), ()), "“Colour” takes fewer answers: choose again."),
        (((), ("a", "b", "c", "d", "e")), "“Parts” takes fewer answers: choose again."),
        (
            (("x" * (LONGEST_ANSWER + 1),), ()),
            "The answer to “Colour” is longer than 4,000 characters: shorten it.",
        ),
    ],
)
async def test_what_is_no_answer_is_refused_and_the_question_stays(tmp_path: Path, answers: Answers, why: str) -> None:
    async with asked(tmp_path, asks(COLOUR, PARTS), DONE) as (_, conversation):
        assert await answer(conversation, answers) == Refused(why)
        assert isinstance(conversation.state, AwaitingApproval)
        assert conversation.question is not None


@pytest.mark.parametrize(
    ("reason", "told"), [("", "The user declined to answer"), ("later", "The user declined to answer: later")]
)
async def test_a_no_is_an_error_result_and_the_run_goes_on(tmp_path: Path, reason: str, told: str) -> None:
    async with asked(tmp_path, asks(), DONE) as (harness, conversation):
        given = ApprovalAnswer(ApprovalChoice.DENY, reason=reason)
        assert await conversation.answer("t1", given) == Accepted()
        await conversation.wait_idle()
        assert results(harness.provider.requests[-1]) == [(told, True)]
        assert (await harness.store.messages(conversation.id))[-1].blocks == (TextBlock("Done."),)


async def test_an_answer_keeps_no_rule(tmp_path: Path) -> None:
    async with asked(tmp_path, asks(), asks(), DONE) as (harness, conversation):
        assert await answer(conversation, RED, ApprovalChoice.ALWAYS) == Accepted()
        await until(lambda: len(harness.provider.requests) == 2 and conversation.question)
        assert conversation.rules == {}
        await answer(conversation, RED)


async def test_the_call_behind_the_questions_runs_after_their_answer(tmp_path: Path) -> None:
    both = Reply((call(), ScriptedCall("bash", '{"command": "ls"}', "t2")))
    async with asked(tmp_path, both, DONE, mode=PermissionMode.AUTO) as (harness, conversation):
        assert harness.tool.calls == []
        await answer(conversation, RED)
        await conversation.wait_idle()
        assert harness.tool.calls == [{"command": "ls"}]


async def test_a_mode_that_asks_nothing_leaves_the_question_open(tmp_path: Path) -> None:
    settings = EngineSettings(auto_title=False, turn_summaries=False, mode_rest=0.0)
    async with engine_harness(tmp_path, asks(), DONE, tools=[AskUser()], settings=settings) as harness:
        conversation = await harness.start("do it", PermissionMode.ASK)
        await until(lambda: conversation.question)
        before = len([one for one in harness.updates if isinstance(one, ApprovalAsked)])
        await conversation.change(ConversationChanges(permission_mode=PermissionMode.AUTO))
        await until(lambda: len([one for one in harness.updates if isinstance(one, ApprovalAsked)]) > before)
        assert isinstance(conversation.state, AwaitingApproval)
        await answer(conversation, RED)
        await conversation.wait_idle()
        assert results(harness.provider.requests[-1]) == [('"Which colour?"="Red"', False)]


async def test_a_cancel_ends_the_run(tmp_path: Path) -> None:
    async with asked(tmp_path, asks()) as (harness, conversation):
        conversation.cancel()
        await conversation.wait_idle()
        assert conversation.question is None
        assert len(harness.provider.requests) == 1


# The end of Phoenix.


async def killed_with_a_question(home: Path) -> None:
    root = Path(__file__).parents[2]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.crash_child", str(home), "ask_user"),
        cwd=root,
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    assert (await child.stdout.readline()).decode().strip() == "ask_user"
    child.kill()
    await child.communicate()


@asynccontextmanager
async def reopened(home: Path, *replies: Reply) -> AsyncIterator[tuple[EngineHarness, Conversation]]:
    async with engine_harness(home, *replies, tools=[AskUser()], settings=QUIET) as harness:
        [summary] = await harness.engine.list()
        yield harness, await harness.engine.open(summary.id)


@pytest.mark.parametrize("killed", [True, False])
async def test_an_open_question_stays_over_the_end_and_its_answer_is_a_message(tmp_path: Path, killed: bool) -> None:
    if killed:
        await killed_with_a_question(tmp_path)
    else:
        async with asked(tmp_path, asks()):
            pass
    async with reopened(tmp_path, DONE) as (harness, conversation):
        assert isinstance(conversation.state, Idle)
        assert harness.provider.requests == []
        question = open_question(conversation)
        assert question.left_open
        assert await answer(conversation, ((),)) == Refused("Choose an answer first, or decline to answer.")
        receipt = await answer(conversation, RED)
        assert isinstance(receipt, Accepted)
        await conversation.wait_idle()
        assert conversation.question is None
        rows = await harness.store.messages(conversation.id)
        [told] = [row for row in rows if row.id == receipt.message_id]
        assert (told.role, told.origin, told.blocks) == (
            Role.USER,
            Origin.HUMAN,
            (TextBlock('"Which colour?"="Red"'),),
        )
    async with reopened(tmp_path) as (_, conversation):
        assert conversation.question is None, "it is answered"


async def test_a_question_left_open_can_be_closed_and_goes_with_the_next_message(tmp_path: Path) -> None:
    async with asked(tmp_path, asks()):
        pass
    async with reopened(tmp_path, DONE) as (harness, conversation):
        assert await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.DENY)) == Accepted()
        assert conversation.question is None
        assert harness.provider.requests == []
    async with reopened(tmp_path, DONE) as (_, conversation):
        assert open_question(conversation).left_open, "it was not answered"
        await conversation.say("something else")
        assert conversation.question is None
        await conversation.wait_idle()


async def test_a_question_that_was_stopped_is_not_shown_again(tmp_path: Path) -> None:
    async with asked(tmp_path, asks()) as (_, conversation):
        conversation.cancel()
        await conversation.wait_idle()
    async with reopened(tmp_path) as (_, conversation):
        assert conversation.question is None


async def test_an_approval_left_open_is_no_question(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((ScriptedCall("bash", "{}", "t1"),)), tools=[AskUser()]) as harness:
        conversation = await harness.start("do it", PermissionMode.ASK)
        await until(lambda: conversation.question)
    async with reopened(tmp_path) as (_, conversation):
        assert conversation.question is None


FINISHED = Reply((Text("done"),))
AT_ONCE = EngineSettings(mode_rest=0.0)
EDIT = "write_file"


@asynccontextmanager
async def asking(
    folder: Path, tool: StubTool | None = None, settings: EngineSettings = AT_ONCE
) -> AsyncIterator[tuple[EngineHarness, Conversation]]:
    tool = tool or StubTool(EDIT, ToolClass.EDIT)
    reply = Reply((ScriptedCall(tool.name, '{"command": "ls"}', "t1"),))
    async with engine_harness(folder, reply, FINISHED, FINISHED, tool=tool, settings=settings) as harness:
        conversation = await harness.start("do it", PermissionMode.ASK)
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


async def look(conversation: Conversation) -> None:
    """Let the mode have come to rest."""
    timer = conversation.reconsidering._timer
    assert timer is not None
    timer.cancel()
    conversation.reconsidering._look()
    await conversation._session.background.finish()


async def test_modes_that_are_passed_by_answer_nothing(tmp_path: Path) -> None:
    """Shift+Tab from ask to ask again leads over auto and plan."""
    passing = (PermissionMode.ACCEPT_EDITS, PermissionMode.AUTO, PermissionMode.PLAN, PermissionMode.ASK)
    async with asking(tmp_path, settings=EngineSettings(mode_rest=PATIENCE)) as (harness, conversation):
        question = conversation.question
        for one in passing:
            await conversation.change(mode(one))
        await look(conversation)
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
    async with asking(tmp_path, settings=EngineSettings(mode_rest=PATIENCE)) as (harness, conversation):
        await conversation.change(mode(PermissionMode.ACCEPT_EDITS))
        await conversation.answer("t1", ApprovalAnswer(ApprovalChoice.DENY, "not there"))
        await until(lambda: isinstance(conversation.state, Idle))
        await look(conversation)
        assert harness.tool.calls == []
        assert cast(Any, conversation.reconsidering)._session.questions.open is None
