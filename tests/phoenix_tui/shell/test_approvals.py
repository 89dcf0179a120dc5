"""The approvals of all conversations in one place."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace
from textual.content import Content

from engine.executor.requests import ApprovalAnswer, ApprovalChoice, Receipt
from engine.machine.messages import ToolCall
from engine.machine.states import AwaitingApproval, ToolRound
from phoenix_tui.modals.agents_sheet import ApprovalsSheet
from phoenix_tui.widgets.answer_gate import GRACE
from tests.support.clocks import SteppedClock
from tests.support.fake_engine import RUN, FakeConversation, question
from tools.contract import ToolRequest


def asks(conversation: FakeConversation, command: str, asked: float) -> None:
    """A question of its own."""
    call = ToolCall(f"call-{conversation.id}", "bash", "{}")
    request, asker = ToolRequest(command, command=command), conversation.record.title
    conversation.ask(question(command, call=call, request=request, asked=asked, asker=asker))


async def opened(shell: Any) -> tuple[ApprovalsSheet, SteppedClock]:
    """The sheet, its question long enough in sight."""
    await shell.press("alt+a", until=lambda: isinstance(shell.top, ApprovalsSheet))
    sheet = shell.top
    time = sheet.question.gate.clock = SteppedClock(1_000.0)
    time.seconds += sheet.question.gate.since + GRACE
    await shell.pilot.pause()
    return sheet, time


def part(sheet: ApprovalsSheet, name: str) -> str:
    """Text of one part of the sheet."""
    content = sheet.query_one(f"#{name}").render()
    assert isinstance(content, Content)
    return content.plain


async def test_every_open_question_is_listed_oldest_first_with_the_whole_text_of_the_chosen_one(
    open_shell: Any, engine: Any
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    asks(second, "make lint\nmake deploy\u202e", 20.0)
    asks(first, "make clean", 10.0)
    async with open_shell((100, 30)) as shell:
        sheet, _ = await opened(shell)
        assert part(sheet, "heading").startswith("2 approvals wait")
        assert part(sheet, "asker").startswith("◆ Run a command?")
        assert [row.split()[:3] for row in part(sheet, "rows").replace("›", " ").splitlines()] == [
            ["◆", "first", "bash"],
            ["◆", "second", "bash"],
        ]
        assert part(sheet, "request") == "make clean"
        assert "make lint↵make deploy" in part(sheet, "rows")
        await shell.press("down", until=lambda: part(sheet, "request").startswith("make lint"))
        assert part(sheet, "request").splitlines()[0] == "make lint"
        assert "\u202e" not in part(sheet, "request")
        assert "202e" in part(sheet, "request").lower()


async def test_answers_go_to_their_conversation_and_the_next_question_takes_no_hasty_letter(
    open_shell: Any, engine: Any
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    asks(first, "make clean", 10.0)
    asks(second, "make deploy", 20.0)
    async with open_shell() as shell:
        sheet, time = await opened(shell)
        await shell.press("y")
        await shell.until(lambda: first.answers == [(f"call-{first.id}", ApprovalAnswer(ApprovalChoice.ONCE))])
        await shell.until(lambda: part(sheet, "request") == "make deploy")
        await shell.press("y")
        await shell.pilot.pause()
        assert second.answers == []
        time.seconds += GRACE
        await shell.press("r", *"not today", "enter")
        await shell.until(
            lambda: second.answers == [(f"call-{second.id}", ApprovalAnswer(ApprovalChoice.DENY, reason="not today"))]
        )
        await shell.until(lambda: shell.top is shell.screen)
        assert shell.in_view is None


async def test_an_answer_under_way_is_given_also_when_the_sheet_is_left_at_once(open_shell: Any, engine: Any) -> None:
    first = engine.seed("first", messages=2)
    asks(first, "make clean", 10.0)
    give, slow = first.answer, asyncio.Event()

    async def answer(call_id: str, answer: ApprovalAnswer) -> Receipt:
        await slow.wait()
        return await give(call_id, answer)  # type: ignore[no-any-return]  # a fake's

    first.answer = answer
    async with open_shell() as shell:
        await opened(shell)
        await shell.press("n", "enter", until=lambda: shell.top is shell.screen)
        slow.set()
        await shell.until(lambda: first.answers == [(f"call-{first.id}", ApprovalAnswer(ApprovalChoice.DENY))])


async def test_answers_stay_in_sight_below_many_approvals_and_a_text_taller_than_the_screen(
    open_shell: Any, engine: Any
) -> None:
    for number in range(8):
        lines = "\n".join(f"echo {line}" for line in range(80))
        asks(engine.seed(f"number {number}", messages=2), lines, float(number))
    async with open_shell() as shell:
        sheet, _ = await opened(shell)
        await shell.until(lambda: "rows 1-" in shell.text)
        assert part(sheet, "heading").startswith("8 approvals wait")
        assert "No, tell it" in shell.text
        await shell.press("end", *["pagedown"] * 27, shows="echo 79")
        await shell.press(*["down"] * 7, shows="› ◆ number 7")


async def test_answers_stay_in_sight_below_a_long_reason(open_shell: Any, engine: Any) -> None:
    one = engine.seed("first", messages=2)
    lines = "\n".join(f"echo {line}" for line in range(80))
    asked = question(
        lines, request=ToolRequest(lines, command=lines), reason="it is a long way " * 14, rule="bash(echo)"
    )
    one.ask(asked)
    async with open_shell() as shell:
        await opened(shell)
        await shell.until(lambda: "No, tell it" in shell.text and "rows 1-" in shell.text)
        assert "it is a long way" in shell.text


async def test_all_are_denied_at_once_with_one_reason(open_shell: Any, engine: Any) -> None:
    made = [engine.seed(f"number {number}", messages=2) for number in range(3)]
    for number, one in enumerate(made):
        asks(one, f"make {number}", float(number))
    async with open_shell() as shell:
        await opened(shell)
        await shell.press("D", *"wait", "enter", until=lambda: all(one.answers for one in made))
        assert {one.answers[0][1] for one in made} == {ApprovalAnswer(ApprovalChoice.DENY, reason="wait")}
        await shell.until(lambda: "3 denied." in shell.toasts)


async def test_what_is_answered_or_stopped_elsewhere_leaves_the_sheet_and_esc_closes_first_the_line_then_the_sheet(
    open_shell: Any, engine: Any
) -> None:
    first, second = engine.seed("first", messages=2), engine.seed("second", messages=2)
    asks(first, "make clean", 10.0)
    asks(second, "make deploy", 20.0)
    async with open_shell() as shell:
        sheet, _ = await opened(shell)
        await shell.press("a", until=lambda: sheet.question.has_class("-filling"))
        second.cancel()
        await shell.until(lambda: part(sheet, "heading").startswith("1 approval waits"))
        assert sheet.question.has_class("-filling")
        await shell.press("escape", until=lambda: not sheet.question.has_class("-filling"))
        assert shell.top is sheet
        await shell.press("enter", until=lambda: shell.in_view is first)
        assert first.answers == []


async def test_the_question_in_view_names_the_others_that_wait(open_shell: Any, engine: Any) -> None:
    first, second, third = (engine.seed(title, messages=2) for title in ("first", "second", "third"))
    asks(first, "make clean", 10.0)
    async with open_shell((120, 40)) as shell:
        await shell.open(first)
        panel = shell.question
        asks(second, "make deploy", 20.0)
        await shell.until(lambda: "1 more waits: second · Alt+A" in shell.text)
        asks(third, "make all", 15.0)
        await shell.until(lambda: "2 more wait: third, second · Alt+A" in shell.text)
        for one in (second, third):
            one.cancel()
        await shell.until(lambda: not panel.query_one("#more").display)


async def test_without_any_the_command_says_so_and_names_what_another_process_asks(
    open_shell: Any, engine: Any
) -> None:
    there = engine.seed("there", messages=2)
    state = AwaitingApproval(1, RUN, ToolRound("m", ToolCall("call", "bash", "{}")), "")
    engine.stored[there.id] = replace(there.record, owner_pid=4242)
    engine.states[there.id] = state
    del engine.opened[there.id]
    async with open_shell() as shell:
        await shell.press("alt+a")
        expected = "No approvals are pending.\nthere asks in process 4242; answer it there."
        await shell.until(lambda: expected in shell.toasts)


async def test_a_request_taller_than_its_room_says_how_much_of_it_is_in_sight(open_shell: Any, engine: Any) -> None:
    first = engine.seed("first", messages=2)
    asks(first, "\n".join(f"echo {number}" for number in range(50)), 10.0)
    async with open_shell() as shell:
        await shell.open(first)
        await shell.until(lambda: "rows 1-7 and 49-50 of 50, Up then PgDn scrolls" in shell.text)
        await shell.press("up", "pagedown", shows="rows 7-13 and 49-50 of 50")
