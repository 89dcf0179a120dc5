"""Questions of the model on the screen: tabs, options, own words, and what Esc and early keys do."""

from __future__ import annotations

from typing import Any

import pytest
from textual._context import active_message_pump

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.machine.messages import ToolCall
from engine.updates import Question
from phoenix_tui.widgets.answer_keys import TYPING_PAUSE
from tests.phoenix_tui.shell.test_shell_question import asked
from tests.support.questions import COLOUR, PARTS
from tools.contract import ToolClass, ToolRequest
from tools.displays import Answers
from tools.planning import questions_of

LONG: dict[str, Any] = {
    "question": "How shall the cache be emptied when its disk is full? " * 3,
    "header": "Cache",
    "options": [
        {"label": "Remove the oldest entries until it fits again and say so", "description": "words " * 60},
        {"label": "Stop", "description": "", "preview": "cache: stop\nlimit: 1 GB"},
    ],
}


def ask_question(*questions: dict[str, Any], left_open: bool = False) -> Question:
    found = questions_of({"questions": list(questions or (COLOUR,))})
    request = ToolRequest("Which colour?", questions=found)
    call = ToolCall("call-1", "ask_user", "{}")
    return Question(call, request, "", "", "", ToolClass.READ, left_open=left_open)


async def asking(shell: Any, *questions: dict[str, Any], left_open: bool = False) -> Any:
    """A conversation whose questions have been in view for a while."""
    found = ask_question(*questions, left_open=left_open)
    fields = ("call", "request", "reason", "rule", "tool_class", "left_open")
    conversation, _ = await asked(shell, **{name: getattr(found, name) for name in fields})
    return conversation


def given(*answers: tuple[str, ...]) -> list[tuple[str, ApprovalAnswer]]:
    return [("call-1", ApprovalAnswer(ApprovalChoice.ONCE, answers=answers))]


DECLINED = [("call-1", ApprovalAnswer(ApprovalChoice.DENY))]


async def test_a_digit_answers_a_single_question_at_once(open_shell: Any) -> None:
    async with open_shell() as shell:
        conversation = await asking(shell)
        await shell.shows("asks you")
        for words in ("Which colour?", "1 ( ) Red  warm", "2 ( ) Blue  cold", "3 ( ) Other  in your own words"):
            assert words in shell.text
        assert "1-3 answers · o own words · n declines" in shell.text
        await shell.pilot.press("2")
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == given(("Blue",))


async def test_the_hint_about_esc_goes_with_the_question_also_when_the_dock_itself_ends_it(open_shell: Any) -> None:
    async with open_shell() as shell:
        await asking(shell)
        await shell.shows("Esc declines to answer")
        token = active_message_pump.set(shell.dock)
        shell.dock.ask(None, shell.active.launch.cwd, "", 0.0)
        active_message_pump.reset(token)
        await shell.until(lambda: "Esc declines to answer" not in shell.text)


@pytest.mark.parametrize(
    ("keys", "answers"),
    [
        (("1", "1", "3", "enter"), (("Red",), ("API", "Tests"))),
        (("1", "2", "2", "1", "enter"), (("Red",), ("API",))),
        (("right", "2", "enter"), ((), ("Docs",))),
        (("2", "left", "1", "3", "enter"), (("Red",), ("Tests",))),
    ],
)
async def test_digits_choose_arrows_turn_and_enter_sends_all(
    open_shell: Any, keys: tuple[str, ...], answers: Answers
) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, COLOUR, PARTS)
        await shell.shows("asks you 2 questions")
        assert "1 ( ) Red" in shell.text
        for key in keys:
            assert conversation.answers == []
            await shell.pilot.press(key)
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == given(*answers)


async def test_the_focus_selects_rows_space_chooses_and_a_question_out_of_sight_is_shown_first(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, PARTS, COLOUR)
        await shell.pilot.press("down", "space", "down", "down", "space")
        await shell.shows("3 [x] Tests")
        assert "1 [x] API" in shell.text
        assert "2 [ ] Docs" in shell.text
        await shell.pilot.press("enter")
        await shell.shows("Which colour?")
        assert conversation.answers == []
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == given(("API", "Tests"), ("Blue",))


@pytest.mark.parametrize("key", ["o", "3"])
async def test_own_words_are_written_on_a_line(open_shell: Any, key: str) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell)
        await shell.pilot.press(key)
        await shell.until(lambda: shell.question.line.is_open)
        await shell.shows("Enter takes your words as the answer.")
        await shell.type("green, please")
        await shell.pilot.press("enter")
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == given(("green, please",))


async def test_a_text_in_the_composer_answers_in_own_words_and_the_rule_says_so(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, COLOUR, PARTS)
        shell.answering.clock.seconds += TYPING_PAUSE
        await shell.type("yes")
        await shell.shows("Enter: the answer in your own words")
        await shell.pilot.press("enter")
        await shell.shows("Which parts?")
        shell.answering.clock.seconds += 10 * TYPING_PAUSE
        await shell.pilot.press("2", "enter")
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == given(("yes",), ("Docs",))


async def test_esc_closes_the_line_then_declines_and_the_run_goes_on(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell)
        await shell.shows("Esc declines to answer")
        await shell.pilot.press("o")
        await shell.until(lambda: shell.question.line.is_open)
        await shell.pilot.press("escape")
        await shell.until(lambda: not shell.question.line.is_open)
        assert conversation.answers == []
        await shell.pilot.press("escape")
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == DECLINED
        assert conversation.cancelled == 0


async def test_keys_typed_ahead_do_not_answer_and_esc_stops_the_run(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell)
        shell.question.gate.begin()
        shell.answering.since = shell.question.gate.since
        await shell.pilot.press("1", "enter")
        await shell.pilot.pause()
        assert conversation.answers == []
        await shell.pilot.press("escape")
        await shell.until(lambda: conversation.cancelled)
        assert conversation.answers == []


async def test_enter_without_an_answer_sends_nothing(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, COLOUR, PARTS)
        await shell.pilot.press("enter", "right", "enter")
        await shell.pilot.pause()
        assert conversation.answers == []


@pytest.mark.parametrize("size", [(40, 24), (200, 60)])
async def test_long_labels_wrap_and_the_selected_row_is_scrolled_into_sight(
    open_shell: Any, size: tuple[int, int]
) -> None:
    async with open_shell(size) as shell:
        await asking(shell, LONG)
        await shell.pilot.press("down", "down")
        await shell.shows("2 ( ) Stop")
        asked_rows = shell.question.query_one("#request").size
        assert asked_rows.width <= size[0]
        await shell.pilot.press("pagedown", "pagedown")
        await shell.shows("│ limit: 1 GB")


async def test_a_question_left_open_is_closed_by_esc_and_a_text_is_a_message(open_shell: Any) -> None:
    async with open_shell((120, 40)) as shell:
        conversation = await asking(shell, left_open=True)
        await shell.shows("your answer is sent as a message")
        await shell.shows("Esc closes the question")
        await shell.pilot.press("escape")
        await shell.until(lambda: conversation.answers)
        assert conversation.answers == DECLINED
