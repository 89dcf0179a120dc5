"""Questions of the model in other conversations: in the list, in the preview, and in the sheet of approvals."""

from __future__ import annotations

from typing import Any

import pytest

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.widgets.answer_gate import GRACE
from tests.phoenix_tui.shell.test_approvals import opened
from tests.phoenix_tui.shell.test_shell_ask import ask_question, given
from tests.phoenix_tui.shell.test_shell_list import focused
from tests.support.fake_engine import FakeEngine
from tests.support.questions import COLOUR, PARTS


def asking(engine: FakeEngine, *questions: dict[str, Any]) -> Any:
    """A conversation that is not in view and asks."""
    engine.seed("here", messages=2)
    other = engine.seed("there", messages=2)
    other.ask(ask_question(*questions))
    return other


async def peeked(shell: Any, engine: FakeEngine) -> PeekSheet:
    await shell.open(engine.opened["c0000001"])
    await focused(shell)
    await shell.pilot.press("g", "right")
    await shell.until(lambda: isinstance(shell.top, PeekSheet) and "1 Red - warm" in shell.text)
    sheet = shell.top
    assert isinstance(sheet, PeekSheet)
    sheet.gate.since -= GRACE
    return sheet


async def test_the_preview_takes_a_digit_for_a_single_question(open_shell: Any, engine: FakeEngine) -> None:
    other = asking(engine)
    async with open_shell((100, 30)) as shell:
        await peeked(shell, engine)
        assert "1-2 answers · r own words · n declines · o opens" in shell.text
        await shell.pilot.press("2")
        await shell.until(lambda: other.answers)
        assert other.answers == given(("Blue",))


async def test_the_preview_takes_own_words(open_shell: Any, engine: FakeEngine) -> None:
    other = asking(engine)
    async with open_shell((100, 30)) as shell:
        await peeked(shell, engine)
        await shell.pilot.press("r")
        await shell.type("green")
        await shell.pilot.press("enter")
        await shell.until(lambda: other.answers)
        assert other.answers == given(("green",))


async def test_a_digit_in_the_preview_of_several_questions_answers_nothing(open_shell: Any, engine: FakeEngine) -> None:
    other = asking(engine, COLOUR, PARTS)
    async with open_shell((100, 30)) as shell:
        await peeked(shell, engine)
        assert "r no, because… · n declines · o opens" in shell.text
        await shell.pilot.press("1", "n")
        await shell.until(lambda: other.answers)
        assert other.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY))]


@pytest.mark.parametrize(("key", "label"), [("1", "Red"), ("2", "Blue")])
async def test_a_digit_in_the_list_answers_the_question_of_the_row(
    open_shell: Any, engine: FakeEngine, key: str, label: str
) -> None:
    other = asking(engine)
    async with open_shell((100, 30)) as shell:
        await shell.open(engine.opened["c0000001"])
        await focused(shell)
        await shell.pilot.press("g", key)
        await shell.until(lambda: other.answers)
        assert other.answers == given((label,))
        assert shell.toasts[-1] == "Answered."


async def test_a_digit_in_the_list_shows_several_questions_and_says_where_none_is(
    open_shell: Any, engine: FakeEngine
) -> None:
    other = asking(engine, COLOUR, PARTS)
    async with open_shell((100, 30)) as shell:
        await shell.open(engine.opened["c0000001"])
        await focused(shell)
        await shell.pilot.press("G", "1")
        await shell.until(lambda: shell.toasts)
        assert shell.toasts[-1] == "This conversation asks nothing."
        await shell.pilot.press("g", "1")
        await shell.until(lambda: isinstance(shell.top, PeekSheet))
        assert other.answers == []


async def test_the_sheet_of_approvals_takes_digits_and_enter(open_shell: Any, engine: FakeEngine) -> None:
    other = asking(engine, COLOUR, PARTS)
    async with open_shell((100, 30)) as shell:
        await opened(shell)
        assert "asks you 2 questions" in shell.text
        await shell.pilot.press("1", "2", "enter")
        await shell.until(lambda: other.answers)
        assert other.answers == given(("Red",), ("Docs",))
