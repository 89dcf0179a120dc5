"""Messages, turns and refusals (SPEC BED-002, STM-01, T-TURN)."""

from __future__ import annotations

import pytest

from engine.machine import texts
from engine.machine.effects import DrainInbox, FinishRun, Notice, Refuse, RequestLlm, SaveMessage, StartRun
from engine.machine.events import (
    ApprovalNeeded,
    InboxArrived,
    LlmFailed,
    RetryAsked,
    ToolFinished,
    UserCancelled,
    UserShell,
)
from engine.machine.messages import LastMessage, Origin, Role, StopReason, TextBlock, ToolCall
from engine.machine.states import (
    AwaitingApproval,
    AwaitingLlm,
    Cancelling,
    Completed,
    Errored,
    Idle,
    Requesting,
    ToolExecuting,
    ToolOrigin,
)
from engine.machine.transition import opens_turn
from tests.support.moves import Driver, calls, done, reply, user


@pytest.mark.parametrize(
    ("last", "opens"),
    [
        (LastMessage.NONE, True),
        (LastMessage.ANSWER, True),
        (LastMessage.TOOL_USE, False),
        (LastMessage.TOOL_RESULT, False),
        (LastMessage.USER, False),
        (LastMessage.SHELL, False),
    ],
)
def test_a_turn_opens_only_after_an_answer_or_at_the_very_start(last: LastMessage, opens: bool) -> None:
    assert opens_turn(last) is opens
    assert Driver().on(user(last=last)).effect(SaveMessage).new_turn is opens


def test_a_message_to_an_idle_conversation_is_saved_and_asked_about() -> None:
    driver = Driver().on(user("hello"))
    assert isinstance(driver.state, AwaitingLlm)
    assert driver.state.phase == Requesting()
    assert [type(effect) for effect in driver.effects] == [SaveMessage, StartRun, DrainInbox, RequestLlm]
    assert driver.effect(RequestLlm) == RequestLlm(driver.gen, "run-1", 1, 250)


def test_a_message_to_a_busy_conversation_is_refused_with_the_way_out() -> None:
    driver = Driver().on(user())
    busy = driver.state
    assert driver.on(user("more")).effects == (Refuse("agent is busy — press Esc to cancel"),)
    assert driver.state is busy


def test_a_message_while_a_question_is_open_names_the_tool() -> None:
    driver = Driver().on(user()).on(reply(1, *calls("t1"), stop=StopReason.TOOL_USE))
    driver.on(ApprovalNeeded(driver.gen, "t1", "asks"))
    assert isinstance(driver.state, AwaitingApproval)
    assert driver.on(user()).effects == (Refuse("waiting for your approval of bash"),)


def test_a_message_while_cancelling_is_refused() -> None:
    driver = Driver().on(user()).on(reply(1, *calls("t1"), stop=StopReason.TOOL_USE)).on(UserCancelled("m"))
    assert isinstance(driver.state, Cancelling)
    assert driver.on(user()).effects == (Refuse(texts.CANCELLING),)


def test_a_sub_agents_transcript_takes_no_message() -> None:
    assert Driver(Completed(3, "done")).on(user()).effects == (Refuse(texts.READ_ONLY),)


def test_a_message_after_an_error_starts_a_new_run_in_the_same_turn() -> None:
    driver = Driver(Errored(4, "server", "broke", retryable=True, run_id="old"))
    driver.on(user(last=LastMessage.USER))
    assert isinstance(driver.state, AwaitingLlm)
    assert driver.effect(SaveMessage).new_turn is False


def test_an_interrupted_turn_is_resumed_without_a_new_message() -> None:
    driver = Driver(Idle(7)).on(RetryAsked(LastMessage.TOOL_RESULT, "run-2", 250))
    assert [type(effect) for effect in driver.effects] == [StartRun, DrainInbox, RequestLlm]


@pytest.mark.parametrize("last", [LastMessage.NONE, LastMessage.ANSWER, LastMessage.SHELL])
def test_nothing_to_retry_is_said(last: LastMessage) -> None:
    driver = Driver(Idle(7)).on(RetryAsked(last, "run-2", 250))
    assert (driver.state, driver.effects) == (Idle(7), (Refuse("Nothing to retry"),))


def test_escape_in_idle_does_nothing_and_dismisses_an_error() -> None:
    assert Driver(Idle(2)).on(UserCancelled("m")).effects == ()
    assert Driver(Errored(2, "x", "y", retryable=True, run_id="r")).on(UserCancelled("m")).state == Idle(3)


@pytest.mark.parametrize(
    ("last", "opens"),
    [
        (LastMessage.NONE, True),
        (LastMessage.ANSWER, True),
        (LastMessage.TOOL_RESULT, False),
        (LastMessage.USER, False),
        (LastMessage.CUT, False),
    ],
)
def test_a_completion_wakes_an_idle_conversation_into_a_turn_by_its_last_message(
    last: LastMessage, opens: bool
) -> None:
    driver = Driver().on(InboxArrived(wakes=True, last=last, run_id="run-9", max_iterations=250))
    assert driver.effect(DrainInbox).new_turn is opens
    assert isinstance(driver.state, AwaitingLlm)


@pytest.mark.parametrize("state", [Idle(1), Errored(1, "k", "m", retryable=True, run_id="r")])
def test_a_completion_that_may_not_wake_stays_in_the_inbox(state: Idle | Errored) -> None:
    arrived = InboxArrived(wakes=isinstance(state, Errored), last=LastMessage.ANSWER, run_id="r", max_iterations=250)
    driver = Driver(state).on(arrived)
    assert (driver.state, driver.effects) == (state, ())


def test_the_users_own_command_runs_and_its_output_reaches_the_model_only_when_asked() -> None:
    def after(send: bool) -> Driver:
        shell = UserShell("m-sh", ToolCall("t1", "bash", "{}"), "run-1", send, LastMessage.ANSWER)
        driver = Driver().on(shell)
        assert isinstance(driver.state, ToolExecuting)
        assert driver.state.round.origin is ToolOrigin.USER
        return driver.on(ToolFinished(driver.gen, done("t1", "out"), "m-out"))

    silent, told = after(False), after(True)
    assert [m.role for m in silent.saved] == [Role.SYSTEM]
    assert [(m.role, m.origin) for m in told.saved] == [(Role.SYSTEM, Origin.NOTICE), (Role.USER, Origin.NOTICE)]
    assert told.saved[-1].blocks == (TextBlock("out"),)
    assert told.effect(SaveMessage).new_turn is True
    assert isinstance(silent.state, Idle)


def test_a_failure_that_cannot_be_retried_is_an_error_at_once() -> None:
    driver = Driver().on(user()).on(LlmFailed(1, "auth", "API key rejected", retryable=False))
    assert driver.state == Errored(2, "auth", "API key rejected", retryable=False, run_id="run-1")
    assert driver.effect(FinishRun).error_code == "auth"
    assert not driver.has(Notice)


def test_the_model_reads_the_command_of_the_user_above_its_output() -> None:
    call = ToolCall("t1", "bash", '{"command": "ls"}')
    driver = Driver().on(UserShell("m-sh", call, "run-1", True, LastMessage.ANSWER, "ls"))
    assert driver.on(ToolFinished(driver.gen, done("t1", "a.txt"), "m-out")).saved[-1].blocks == (
        TextBlock("$ ls\na.txt"),
    )
