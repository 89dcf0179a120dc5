"""Tool rounds, approvals, cancel (SPEC BED-004, BED-005, STM-03, STM-04, STM-06, T-SM 1-4, 8)."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from engine.codec import decode_state, encode_state
from engine.machine import texts
from engine.machine.effects import (
    AbortLlm,
    AskApproval,
    CancelTimer,
    ExecTool,
    FinishRun,
    KillTool,
    MarkToolCall,
    Refuse,
    RequestLlm,
    RunStatus,
    SaveNotice,
    SaveToolResult,
    StartCancelDeadline,
)
from engine.machine.events import (
    ApprovalAnswered,
    ApprovalLapsed,
    ApprovalNeeded,
    CancelDeadlinePassed,
    LlmFailed,
    StragglersEnded,
    ToolAborted,
    ToolFinished,
    UserCancelled,
    Verdict,
)
from engine.machine.messages import StopReason, ToolStatus
from engine.machine.states import AwaitingApproval, Cancelling, Idle, StopCause, ToolExecuting
from tests.support.moves import Driver, calls, done, reply, user


def executing(*ids: str) -> Driver:
    return Driver().on(user()).on(reply(1, *calls(*ids), stop=StopReason.TOOL_USE))


def test_tools_run_one_after_the_other_and_all_results_go_out_together_in_order() -> None:
    driver = executing("t1", "t2").on(ToolFinished(2, done("t1", "one", ToolStatus.ERROR), "r1"))
    assert driver.effect(ExecTool).call.id == "t2"
    assert not driver.has(RequestLlm)
    driver.on(ToolFinished(driver.gen, done("t2", "two"), "r2"))
    assert driver.results() == [("t1", "one", True), ("t2", "two", False)]
    assert driver.effect(RequestLlm).iteration == 2


def test_cancel_in_the_second_of_three_tools_answers_every_call() -> None:
    driver = executing("t1", "t2", "t3").on(ToolFinished(2, done("t1", "real"), "r"))
    driver.on(UserCancelled("m-c", elapsed=12))
    assert isinstance(driver.state, Cancelling)
    assert driver.effects == (KillTool(driver.gen, "t2"), StartCancelDeadline(driver.gen, 0.1))
    named = ("bash 41", "node 42 (port 8080)")
    ended = driver.on(ToolAborted(driver.gen, "t2", "m-r", ended_processes=3, named=named)).state
    assert ended == Idle(driver.gen)
    assert driver.results() == [
        ("t1", "real", False),
        ("t2", "Cancelled by user", True),
        ("t3", "Skipped due to cancellation", True),
    ]
    assert driver.effect(FinishRun).status is RunStatus.CANCELLED
    told = "Stopped by you after 12 s · 3 processes ended: bash 41, node 42 (port 8080), 1 more"
    assert driver.effect(SaveNotice).text == told


def test_a_result_that_arrives_after_escape_is_discarded() -> None:
    driver = executing("t1").on(UserCancelled("m-c"))
    assert driver.on(ToolFinished(2, done("t1", "too late"), "r")).effects == ()
    driver.on(ToolAborted(driver.gen, "t1", "m-r"))
    assert driver.results() == [("t1", "Cancelled by user", True)]


def test_a_stopped_call_says_where_its_command_runs_on() -> None:
    driver = executing("t1", "t2").on(UserCancelled("m-c"))
    driver.on(ToolAborted(driver.gen, "t1", "m-r", job="job-3"))
    assert driver.results() == [
        ("t1", "Cancelled by user. The command runs on in the background as job job-3.", True),
        ("t2", "Skipped due to cancellation", True),
    ]


def test_the_conversation_is_idle_at_the_deadline_even_if_a_process_will_not_die() -> None:
    driver = executing("t1").on(UserCancelled("m-c"))
    cancelling = driver.gen
    driver.on(CancelDeadlinePassed(cancelling, "m-r"))
    assert driver.state == Idle(driver.gen)
    assert driver.on(ToolAborted(cancelling, "t1", "m-x")).effects == (), "the late confirmation changes nothing"


def test_what_ends_after_the_deadline_is_still_told_and_changes_nothing_else() -> None:
    driver = Driver(Idle(9)).on(StragglersEnded(4))
    assert (driver.state, driver.effects) == (Idle(9), (SaveNotice("Stopped: 4 processes ended"),))
    assert (
        driver.on(StragglersEnded(1, (7,))).effect(SaveNotice).text == "Stopped: 1 process ended · not yet dead: pid 7"
    )
    assert driver.on(StragglersEnded(0)).effects == ()


def test_survivors_of_a_kill_are_named() -> None:
    driver = executing("t1").on(UserCancelled("m-c", elapsed=1))
    driver.on(ToolAborted(driver.gen, "t1", "m-r", ended_processes=1, survivors=(41, 42)))
    assert driver.effect(SaveNotice).text == "Stopped by you after 1 s · 1 process ended · not yet dead: pid 41, 42"


def test_a_second_escape_while_cancelling_does_nothing() -> None:
    driver = executing("t1").on(UserCancelled("m-c"))
    before = driver.state
    assert driver.on(UserCancelled("m-d")).effects == ()
    assert driver.state is before


def test_cancelling_a_model_call_stores_no_text_and_aborts_call_and_timer() -> None:
    driver = Driver().on(user()).on(UserCancelled("m-c", elapsed=3))
    assert driver.state == Idle(2)
    assert [m.id for m in driver.saved] == ["m-user"]
    assert driver.has(AbortLlm)
    assert driver.has(CancelTimer)
    waiting = Driver().on(user()).on(LlmFailed(1, "server", "x", retryable=True)).on(UserCancelled("m"))
    assert waiting.state == Idle(3)


def test_the_time_limit_ends_a_run_as_a_failure_with_its_own_code() -> None:
    driver = executing("t1").on(UserCancelled("m-c", elapsed=30, by=StopCause.TIME_LIMIT))
    driver.on(ToolAborted(driver.gen, "t1", "m-r"))
    finish = driver.effect(FinishRun)
    assert (finish.status, finish.error_code) == (RunStatus.FAILURE, "timeout")
    assert driver.effect(SaveNotice).text == "Stopped at the time limit after 30 s"


@pytest.mark.parametrize("state", ["model", "tool", "question"])
def test_a_run_that_another_process_cancels_says_so(state: str) -> None:
    driver = Driver().on(user()) if state == "model" else executing("t1") if state == "tool" else asking()
    driver.on(UserCancelled("m-c", elapsed=3, by=StopCause.OUTSIDE))
    if state == "tool":
        driver.on(CancelDeadlinePassed(driver.gen, "m-r"))
    finish = driver.effect(FinishRun)
    assert (finish.status, finish.error) == (RunStatus.CANCELLED, "Another process cancelled the run.")
    assert driver.effect(SaveNotice).text == "Stopped by another process after 3 s"


@pytest.mark.parametrize("state", ["model", "tool", "question"])
def test_a_run_that_the_end_of_phoenix_interrupts_reads_as_after_a_crash(state: str) -> None:
    """No word of it names the user, for the model neither (SPEC STM-10, STM-12)."""
    driver = Driver().on(user()) if state == "model" else executing("t1", "t2") if state == "tool" else asking()
    driver.on(UserCancelled("m-c", elapsed=3, by=StopCause.ENDING))
    if state == "tool":
        assert decode_state(encode_state(driver.state)) == driver.state
        driver.on(CancelDeadlinePassed(driver.gen, "m-r"))
    assert driver.state == Idle(driver.gen)
    finish = driver.effect(FinishRun)
    assert finish == FinishRun("run-1", RunStatus.INTERRUPTED, 1, texts.CUT_OFF, "interrupted", recoverable=True)
    assert driver.effect(SaveNotice).text == "Interrupted: Phoenix ended after 3 s"
    if state != "model":
        assert driver.results() == [("t1", texts.INTERRUPTED, True), ("t2", texts.INTERRUPTED, True)]


def test_a_stored_stop_of_an_earlier_version_still_decodes() -> None:
    driver = executing("t1").on(UserCancelled("m-c", elapsed=3, by=StopCause.OUTSIDE))
    stored = json.loads(encode_state(driver.state))
    del stored["ending"]
    assert decode_state(json.dumps(stored)) == driver.state


@pytest.mark.parametrize("call", ["stranger", "t2"])
def test_a_result_of_another_call_is_ignored(call: str) -> None:
    driver = executing("t1", "t2")
    assert driver.on(ToolFinished(driver.gen, done(call), "r")).effects == ()


def test_a_repeating_run_is_stopped_with_every_call_answered() -> None:
    driver = executing("t1", "t2").on(ToolFinished(2, done("t1"), "m-r", stop_run=True))
    assert driver.state == Idle(3)
    assert driver.results()[1] == ("t2", texts.SKIPPED_LOOP, True)
    assert driver.effect(FinishRun).error_code == "loop"


def asking() -> Driver:
    driver = executing("t1", "t2")
    return driver.on(ApprovalNeeded(driver.gen, "t1", "mode asks"))


def test_a_question_is_on_record_before_it_is_shown() -> None:
    driver = asking()
    assert isinstance(driver.state, AwaitingApproval)
    assert driver.effect(MarkToolCall) == MarkToolCall("t1", ToolStatus.AWAITING_APPROVAL)


def test_allowing_starts_the_call_and_keeps_the_decision() -> None:
    driver = asking()
    driver.on(ApprovalAnswered("t1", Verdict.ALLOW, "m-r", note="bash: allowed once"))
    assert isinstance(driver.state, ToolExecuting)
    assert driver.effect(ExecTool).approved is True
    assert driver.effect(SaveNotice).text == "bash: allowed once"


def test_denying_tells_the_model_why_and_goes_on_with_the_next_call() -> None:
    driver = asking()
    driver.on(ApprovalAnswered("t1", Verdict.DENY, "m-r", reason="use make"))
    assert driver.effect(SaveToolResult).result.text == "User denied permission to run bash: use make"
    assert driver.effect(ExecTool).call.id == "t2"
    assert texts.describe_denial("bash", "") == "User denied permission to run bash."


def test_a_question_that_lapsed_starts_the_call_as_one_nobody_allowed() -> None:
    driver = asking()
    driver.on(ApprovalLapsed(driver.gen, "t1", "bash: allowed by mode auto"))
    assert isinstance(driver.state, ToolExecuting)
    assert driver.effect(ExecTool).approved is False
    assert driver.effect(MarkToolCall) == MarkToolCall("t1", ToolStatus.RUNNING)
    assert driver.effect(SaveNotice).text == "bash: allowed by mode auto"
    assert driver.on(ApprovalAnswered("t1", Verdict.ALLOW, "m")).effects == (Refuse(texts.NOTHING_TO_ANSWER),)


def test_an_open_question_goes_on_with_another_reason() -> None:
    driver = asking()
    before = driver.state
    driver.on(ApprovalNeeded(driver.gen, "t1", "another mode asks"))
    assert isinstance(before, AwaitingApproval)
    assert driver.state == replace(before, reason="another mode asks")
    assert driver.effects == (AskApproval(before.round.current, "another mode asks"),)


@pytest.mark.parametrize("event", [ApprovalLapsed(0, "t2"), ApprovalNeeded(0, "t2", "why"), ApprovalLapsed(0, "t1")])
def test_what_belongs_to_another_question_changes_nothing(event: ApprovalLapsed | ApprovalNeeded) -> None:
    driver = asking()
    before = driver.state
    mine = replace(event, gen=driver.gen) if event.call_id == "t2" else event  # the last one is late
    assert driver.on(mine).effects == ()
    assert driver.state == before


def test_escape_at_a_question_ends_the_run_with_synthetic_results() -> None:
    driver = asking()
    driver.on(UserCancelled("m-c"))
    assert driver.state == Idle(driver.gen)
    assert [text for _, text, _ in driver.results()] == ["Cancelled by user", "Skipped due to cancellation"]
    assert not driver.has(KillTool)


def test_an_answer_to_a_question_that_is_gone_is_refused() -> None:
    driver = Driver(Idle(5)).on(ApprovalAnswered("t1", Verdict.ALLOW, "m"))
    assert driver.effects == (Refuse("That question is no longer open"),)
