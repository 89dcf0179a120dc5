"""A plan on the screen: rendered, scrolled, changed, and its five answers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice
from engine.machine.messages import ToolCall
from engine.updates import Question
from phoenix_tui.modals.text_sheet import EditSheet, TextSheet
from phoenix_tui.widgets.answer_keys import TYPING_PAUSE
from tests.phoenix_tui.shell.test_shell_question import asked
from tools.contract import PlainDisplay, ToolClass, ToolRequest

PLAN = "# Bound the delay\n\nRead **retry.py**, then:\n\n- change `delay`\n- run the tests"


def plan_question(plan: str = PLAN) -> Question:
    request = ToolRequest("Bound the delay", preview=PlainDisplay(plan), plan=plan)
    call = ToolCall("call-1", "exit_plan", "{}")
    return Question(call, request, "in plan mode, nothing is changed before you approve", "", "", ToolClass.READ)


def mode_of(shell: Any) -> str:
    return str(shell.conversation.record.permission_mode.value)


async def planned(shell: Any, plan: str = PLAN) -> Any:
    """A conversation whose plan has been in view for a while."""
    found = plan_question(plan)
    conversation, _ = await asked(
        shell, **{name: getattr(found, name) for name in ("call", "request", "reason", "rule", "tool_class")}
    )
    return conversation


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("1", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ACCEPT_EDITS)),
        ("a", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ACCEPT_EDITS)),
        ("2", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ASK)),
        ("3", ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.FRESH)),
        ("5", ApprovalAnswer(ApprovalChoice.DENY, plan_choice=PlanChoice.LEAVE)),
    ],
)
async def test_a_number_or_letter_answers_the_plan(open_shell: Any, key: str, answer: ApprovalAnswer) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await planned(shell)
        await shell.shows("proposes a plan")
        await shell.pilot.press(key)
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == [("call-1", answer)]


async def test_the_plan_is_rendered_and_its_answers_are_named(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await planned(shell)
        await shell.shows("• change delay")
        assert "**" not in shell.text
        for words in (
            "1 a  approve, accept edits",
            "2 y  approve, ask before each change",
            "3 s  approve, start with a fresh context",
            "4 r  revise: say how",
            "5 n  not now, stay in plan mode",
        ):
            assert words in shell.text


async def test_remarks_are_written_on_a_line_or_as_a_message(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await planned(shell)
        await shell.pilot.press("4")
        await shell.until(lambda: shell.question.line.is_open)
        await shell.type("add tests")
        await shell.shows("Enter sends your remarks; the agent revises its plan.")
        await shell.pilot.press("enter")
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY, reason="add tests"))]


async def test_the_rule_above_a_message_says_that_it_asks_for_another_plan(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await planned(shell)
        shell.answering.clock.seconds += TYPING_PAUSE
        await shell.type("more")
        await shell.shows("Enter: revise the plan, with these words")
        await shell.pilot.press("enter")
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY, reason="more"))]


async def test_e_changes_the_plan_and_its_answer_carries_it(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await planned(shell)
        await shell.pilot.press("e")
        await shell.until(lambda: isinstance(shell.top, EditSheet))
        await shell.type(" twice")
        await shell.pilot.press("ctrl+s")
        await shell.shows("run the tests twice")
        shell.answering.clock.seconds += TYPING_PAUSE
        await shell.pilot.press("2")
        await shell.until(lambda: conversation.answers)
        [(_, answer)] = conversation.answers
        assert answer == ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.ASK, plan=f"{PLAN} twice")


async def test_an_e_typed_into_a_message_is_text_where_no_plan_waits(open_shell: Any) -> None:
    async with open_shell() as shell:
        await asked(shell)
        await shell.type("e")
        assert shell.composer.text == "e"


async def test_a_yes_to_a_long_plan_counts_once_all_of_it_was_in_sight(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await planned(shell, "\n\n".join(f"{number}. step" for number in range(40)))
        await shell.pilot.press("1")
        await shell.until(lambda: shell.question.gate.refusal)
        assert conversation.answers == []


async def test_a_hostile_plan_reaches_no_terminal_and_is_laid_out(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        await planned(shell, "# a\x1b]52;c;AAAA\x07\n\n\u202egnp.exe 漢字\n\n" + "[" * 2_000)
        await shell.shows("漢字")
        shell.conversation.ask(plan_question("漢字 \x1b[2J\n" + "[" * 30_000))
        await shell.shows("[[[[")
        assert not {"\x1b", "\x07", "\u202e"} & set(shell.text)


async def test_the_command_shows_the_approved_plan_or_begins_plan_mode(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await shell.say("go")
        await shell.command("/plan")
        assert mode_of(shell) == "plan"
        await shell.until(lambda: any(toast.startswith("Plan mode: the agent reads") for toast in shell.toasts))
        await shell.command("/plan")
        await shell.until(lambda: any("has proposed no plan yet" in toast for toast in shell.toasts))
        await shell.command("/plan off")
        assert mode_of(shell) == "ask"
        await shell.command("/plan edit")
        await shell.until(lambda: "No plan waits for an answer here." in shell.toasts)
        await shell.command("/plan what")
        await shell.until(lambda: any(toast.startswith("/plan shows") for toast in shell.toasts))
        conversation.record = replace(conversation.record, plan=PLAN)
        await shell.command("/plan")
        await shell.until(lambda: isinstance(shell.top, TextSheet))
        await shell.shows("Bound the delay")
