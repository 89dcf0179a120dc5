"""Conversations that are not in view: their questions, a peek into them, replies, other processes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.ports import StorageError
from phoenix_tui.modals.peek_sheet import PeekSheet
from phoenix_tui.widgets.answer_gate import GRACE
from phoenix_tui.widgets.line_input import LineInput
from phoenix_tui.workspace import conversation_index
from phoenix_tui.workspace.conversation_index import AGAIN, LOOK_EVERY, REST_SHARE, follow
from tests.phoenix_tui.shell.test_approvals import opened
from tests.phoenix_tui.shell.test_shell_ask import ask_question, given
from tests.phoenix_tui.shell.test_shell_list import focused
from tests.support.fake_engine import FakeConversation, FakeEngine
from tests.support.questions import COLOUR, PARTS


def asking(engine: FakeEngine, *questions: dict[str, Any]) -> Any:
    """A conversation that is not in view and asks."""
    engine.seed("here", messages=2)
    other = engine.seed("there", messages=2)
    other.ask(ask_question(*questions))
    return other


async def peek_at_question(shell: Any, engine: FakeEngine) -> PeekSheet:
    await shell.open(engine.opened["c0000001"])
    await focused(shell)
    await shell.press("g", "right", until=lambda: isinstance(shell.top, PeekSheet) and "1 Red - warm" in shell.text)
    sheet = shell.top
    assert isinstance(sheet, PeekSheet)
    sheet.gate.since -= GRACE
    return sheet


async def test_the_preview_takes_a_digit_for_a_single_question(open_shell: Any, engine: FakeEngine) -> None:
    other = asking(engine)
    async with open_shell((100, 30)) as shell:
        await peek_at_question(shell, engine)
        assert "1-2 answers · r own words · n declines · o opens" in shell.text
        await shell.press("2", until=lambda: other.answers)
        assert other.answers == given(("Blue",))


async def test_the_preview_takes_own_words(open_shell: Any, engine: FakeEngine) -> None:
    other = asking(engine)
    async with open_shell((100, 30)) as shell:
        await peek_at_question(shell, engine)
        await shell.press("r")
        await shell.enter("green", until=lambda: other.answers)
        assert other.answers == given(("green",))


async def test_a_digit_in_the_preview_of_several_questions_answers_nothing(open_shell: Any, engine: FakeEngine) -> None:
    other = asking(engine, COLOUR, PARTS)
    async with open_shell((100, 30)) as shell:
        await peek_at_question(shell, engine)
        assert "r no, because… · n declines · o opens" in shell.text
        await shell.press("1", "n", until=lambda: other.answers)
        assert other.answers == [("call-1", ApprovalAnswer(ApprovalChoice.DENY))]


@pytest.mark.parametrize(("key", "label"), [("1", "Red"), ("2", "Blue")])
async def test_a_digit_in_the_list_answers_the_question_of_the_row(
    open_shell: Any, engine: FakeEngine, key: str, label: str
) -> None:
    other = asking(engine)
    async with open_shell((100, 30)) as shell:
        await shell.open(engine.opened["c0000001"])
        await focused(shell)
        await shell.press("g", key, until=lambda: other.answers)
        assert other.answers == given((label,))
        assert shell.toasts[-1] == "Answered."


async def test_a_digit_in_the_list_shows_several_questions_and_says_where_none_is(
    open_shell: Any, engine: FakeEngine
) -> None:
    other = asking(engine, COLOUR, PARTS)
    async with open_shell((100, 30)) as shell:
        await shell.open(engine.opened["c0000001"])
        await focused(shell)
        await shell.press("G", "1", until=lambda: shell.toasts)
        assert shell.toasts[-1] == "This conversation asks nothing."
        await shell.press("g", "1", until=lambda: isinstance(shell.top, PeekSheet))
        assert other.answers == []


async def test_the_sheet_of_approvals_takes_digits_and_enter(open_shell: Any, engine: FakeEngine) -> None:
    other = asking(engine, COLOUR, PARTS)
    async with open_shell((100, 30)) as shell:
        await opened(shell)
        assert "asks you 2 questions" in shell.text
        await shell.press("1", "2", "enter", until=lambda: other.answers)
        assert other.answers == given(("Red",), ("Docs",))


async def peek_while_busy(shell: Any, engine: FakeEngine, refusal: str = "") -> tuple[FakeConversation, asyncio.Event]:
    """Look into a conversation that keeps messages waiting for the event."""
    here, other = engine.seed("here", messages=2), engine.seed("there", messages=2, draft="later")
    await shell.open(here)
    await shell.press("ctrl+l", until=lambda: shell.rows.has_focus)
    await shell.press("k", "p", until=lambda: isinstance(shell.top, PeekSheet) and shell.top._conversation is not None)
    other.hold, other.refusal = asyncio.Event(), refusal
    return other, other.hold


async def test_a_second_enter_sends_no_second_reply_and_letters_behind_it_stay(
    open_shell: Any, engine: FakeEngine
) -> None:
    async with open_shell((100, 20)) as shell:
        other, decide = await peek_while_busy(shell, engine)
        await shell.type("go on", "enter", "enter", "x")
        decide.set()
        await shell.until(lambda: shell.toasts)
        assert (other.said, shell.toasts) == ([("go on", ())], ["there: sent."])
        assert shell.top.query_one(LineInput).text == "x"


async def test_a_refused_reply_stands_before_what_was_typed_since(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell((100, 20)) as shell:
        _, decide = await peek_while_busy(shell, engine, "A hook refused this message.")
        await shell.type("go", "enter", "x")
        decide.set()
        await shell.until(lambda: shell.toasts)
        assert shell.top.query_one(LineInput).text == "go x"


async def test_a_reply_refused_after_the_peek_was_closed_is_kept_as_a_draft(
    open_shell: Any, engine: FakeEngine
) -> None:
    async with open_shell((100, 20)) as shell:
        other, decide = await peek_while_busy(shell, engine, "A hook refused this message.")
        await shell.type("go", "enter", "escape", until=lambda: not isinstance(shell.top, PeekSheet))
        decide.set()
        await shell.until(lambda: shell.toasts)
        assert other.record.draft == "go\nlater"


async def test_a_reply_that_cannot_be_stored_says_why(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell((100, 20)) as shell:
        other, _ = await peek_while_busy(shell, engine)

        async def fails(*_: object) -> None:
            raise StorageError("The disk is full.")

        setattr(other, "say", fails)  # noqa: B010 - a method, so types refuse it
        await shell.enter("go", until=lambda: shell.toasts == ["there: The disk is full."])
        assert shell.top.query_one(LineInput).text == "go"


class Enough(Exception):
    """The test has seen what it wants to see."""


async def test_it_reads_again_only_after_a_change_and_rests_the_longer_the_longer_that_took() -> None:
    answers: list[bool | StorageError] = [False, True, StorageError("busy"), True, False]
    now, reloads = 0.0, 0
    rests: list[float] = []

    async def changed() -> bool:
        if not answers:
            raise Enough
        answer = answers.pop(0)
        if isinstance(answer, StorageError):
            raise answer
        return answer

    async def reload() -> None:
        nonlocal now, reloads
        reloads += 1
        now += 2.0 if reloads == 2 else 0.0

    async def sleep(seconds: float) -> None:
        rests.append(seconds)

    with pytest.raises(Enough):
        await follow(changed, reload, sleep, lambda: now)
    assert reloads == 2
    assert rests == [LOOK_EVERY, LOOK_EVERY, AGAIN, 2.0 * REST_SHARE, LOOK_EVERY]


async def test_a_conversation_of_another_process_comes_into_the_list(
    open_shell: Any, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_index, "LOOK_EVERY", 0.01)
    async with open_shell((120, 40)) as shell:
        await shell.until(lambda: shell.ctx)
        made = engine.seed("Made by another process", messages=2)
        assert shell.active.index.summary(made.id) is None
        engine.written_elsewhere = True
        await shell.until(lambda: shell.active.index.summary(made.id))
