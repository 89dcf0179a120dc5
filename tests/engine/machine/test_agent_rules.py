"""A sub-agent's own run (SPEC STM-09, T-SM 11) and its parent's machine (SPEC STM-05, STM-06, T-AGG)."""

from __future__ import annotations

import pytest

from engine.machine import agent_texts
from engine.machine.effects import (
    CancelAgents,
    DrainInbox,
    ExecTool,
    FinishRun,
    Refuse,
    RequestLlm,
    RunStatus,
    SaveMessage,
    SaveToolResult,
    StartCancelDeadline,
    StartRun,
)
from engine.machine.events import (
    AgentBegun,
    AgentDropped,
    AgentFinished,
    AgentRecalled,
    AgentsStarted,
    CancelDeadlinePassed,
    CompactionEnded,
    LlmFailed,
    ToolFinished,
    UserCancelled,
)
from engine.machine.messages import NewMessage, Origin, Role, StopReason, TextBlock, ToolUseBlock
from engine.machine.states import (
    AgentOutcome,
    AgentStatus,
    AgentTask,
    AwaitingLlm,
    AwaitingSubagents,
    Cancelling,
    Completed,
    Failed,
    Idle,
    StopCause,
)
from tests.support.machine import nothing_compacted
from tests.support.moves import Driver, calls, done, reply, user

SUBMIT = ToolUseBlock("s1", "submit_result", '{"result": "All green"}')
THREE = (AgentTask("a1", "find tests"), AgentTask("a2", "read docs"), AgentTask("a3", "run\n  them"))


def child(limit: int = 20) -> Driver:
    return Driver().on(AgentBegun("run-1", limit))


def outcome(agent: str, text: str = "found") -> AgentOutcome:
    return AgentOutcome(agent, AgentStatus.SUCCESS, text)


def finished(driver: Driver, told: AgentOutcome) -> Driver:
    return driver.on(AgentFinished(driver.gen, told, f"m-{told.agent_id}"))


def waiting() -> Driver:
    driver = Driver().on(user()).on(reply(1, *calls("t1", "t2"), stop=StopReason.TOOL_USE))
    return driver.on(AgentsStarted(driver.gen, "t1", THREE))


def test_submitting_alone_completes_with_the_chain_answered() -> None:
    driver = child().on(reply(1, SUBMIT, stop=StopReason.TOOL_USE))
    assert driver.state == Completed(driver.gen, "All green")
    assert driver.results() == [("s1", "Submitted.", False)]
    assert driver.effect(FinishRun).status is RunStatus.SUCCESS


def test_a_reported_error_is_a_failure_with_its_words() -> None:
    driver = child().on(reply(1, ToolUseBlock("s1", "submit_error", '{"error": "no tests here"}')))
    assert driver.state == Failed(driver.gen, "reported", "no tests here")


def test_a_submission_beside_other_calls_is_an_error_for_every_one_and_the_run_goes_on() -> None:
    driver = child().on(reply(1, SUBMIT, *calls("t1"), stop=StopReason.TOOL_USE))
    assert driver.results() == [("s1", agent_texts.ONLY_TOOL, True), ("t1", agent_texts.ONLY_TOOL, True)]
    assert driver.effect(RequestLlm).iteration == 2
    assert not driver.has(ExecTool)


@pytest.mark.parametrize("arguments", ["{}", '{"result": " "}', "[]", "not json", '{"result": 3}'])
def test_a_submission_that_says_nothing_is_asked_for_again(arguments: str) -> None:
    driver = child().on(reply(1, ToolUseBlock("s1", "submit_result", arguments)))
    assert driver.results() == [("s1", agent_texts.bad_submission("submit_result", "result"), True)]
    assert isinstance(driver.state, AwaitingLlm)


def test_ending_in_words_is_nudged_once_and_then_a_failure_that_keeps_the_words() -> None:
    driver = child().on(reply(1, TextBlock("I looked")))
    assert driver.saved[-1].blocks == (TextBlock("Call submit_result with your findings."),)
    driver.on(reply(driver.gen, TextBlock("Nothing there.")))
    assert driver.state == Failed(driver.gen, "no_submission", "no result submitted", "Nothing there.")


def test_the_last_call_may_only_submit() -> None:
    driver = child(limit=1).on(reply(1, *calls("t1"), stop=StopReason.TOOL_USE))
    driver.on(ToolFinished(driver.gen, done("t1", "out"), "r1"))
    assert driver.effect(RequestLlm).only_submit
    graced = Driver(driver.state).on(reply(driver.gen, SUBMIT))
    assert isinstance(graced.state, Completed)
    driver.on(reply(driver.gen, *calls("t2"), stop=StopReason.TOOL_USE))
    assert driver.state == Failed(driver.gen, "turn_limit", "turn limit reached")
    assert driver.results() == [("t2", agent_texts.ONLY_TOOL, True)]


@pytest.mark.parametrize(
    ("timed_out", "kind", "error"), [(False, "cancelled", "cancelled"), (True, "timeout", "timed out")]
)
def test_stopping_a_sub_agent_is_an_outcome(timed_out: bool, kind: str, error: str) -> None:
    driver = child().on(UserCancelled("m", by=StopCause.TIME_LIMIT if timed_out else StopCause.USER))
    assert driver.state == Failed(driver.gen, kind, error)


def test_a_model_that_fails_for_good_is_an_outcome() -> None:
    driver = child().on(LlmFailed(1, "auth", "API key rejected", retryable=False))
    assert driver.state == Failed(driver.gen, "auth", "API key rejected")


def test_a_second_overflow_is_an_outcome() -> None:
    driver = child().on(LlmFailed(1, "overflow", "too long", retryable=False, context_overflow=True))
    assert isinstance(driver.state, AwaitingLlm)
    driver.on(CompactionEnded(driver.gen, nothing_compacted("no model")))
    ended = driver.on(LlmFailed(driver.gen, "overflow", "too long", retryable=False, context_overflow=True)).state
    assert ended == Failed(driver.gen, "overflow", "context exhausted before result submission")


def test_one_begins_with_what_stands_in_its_inbox_and_then_with_what_was_found_before() -> None:
    found = NewMessage("m1", Role.USER, Origin.SUBAGENT, (TextBlock("found"),))
    driver = Driver().on(AgentBegun("run-1", 20, found))
    asked = RequestLlm(1, "run-1", 1, 20)
    assert driver.effects == (DrainInbox(new_turn=True), SaveMessage(found), StartRun("run-1"), asked)
    assert driver.on(AgentBegun("run-2", 20)).effects == (), "it works already"


def test_one_that_waits_to_start_can_be_dropped_and_one_that_has_ended_waits_again_when_told() -> None:
    driver = Driver().on(AgentDropped("cancelled", "cancelled"))
    assert driver.state == Failed(1, "cancelled", "cancelled")
    driver.on(user())
    assert isinstance(driver.state, Failed), "the user cannot write there"
    driver.on(AgentBegun("run-1", 20))
    assert isinstance(driver.state, Failed), "its turn comes after it was told to go on"
    assert driver.on(AgentRecalled()).state == Idle(2)
    assert driver.on(AgentRecalled()).has(Refuse)
    assert isinstance(driver.on(AgentBegun("run-1", 20)).state, AwaitingLlm)


def test_the_last_outcome_is_the_result_in_request_order_whatever_the_order_of_ends() -> None:
    driver = waiting()
    assert driver.state.pending == ("a1", "a2", "a3")  # type: ignore[union-attr]  # it waits for them
    finished(driver, outcome("a3", "3 passed"))
    finished(driver, AgentOutcome("a2", AgentStatus.TIMEOUT, "half", "timed out"))
    finished(driver, AgentOutcome("stranger", AgentStatus.SUCCESS))
    finished(driver, outcome("a3", "again"))
    assert isinstance(driver.state, AwaitingSubagents)
    finished(driver, outcome("a1"))
    saved = driver.effect(SaveToolResult).result
    assert (saved.call_id, saved.is_error) == ("t1", False)
    assert saved.text == (
        "Sub-agent results (2 of 3 succeeded):\n\n"
        "## 1. find tests — success [a1]\nfound\n\n"
        "## 2. read docs — failed: timed out [a2]\nhalf\n\n"
        "## 3. run them — success [a3]\n3 passed"
    )
    assert driver.effect(ExecTool).call.id == "t2"


def test_cancel_keeps_what_the_finished_ones_found_and_ends_with_the_last_answer() -> None:
    driver = finished(waiting(), outcome("a2", "read"))
    driver.on(UserCancelled("m"))
    assert driver.effect(CancelAgents).agent_ids == ("a1", "a3")
    assert driver.has(StartCancelDeadline)
    finished(driver, AgentOutcome("a1", AgentStatus.CANCELLED, reason="cancelled"))
    assert isinstance(driver.state, Cancelling)
    finished(driver, AgentOutcome("a3", AgentStatus.CANCELLED, reason="cancelled"))
    assert isinstance(driver.state, Idle)
    first, blank, *rest = driver.results()[0][1].splitlines()
    assert (first, blank, rest[0]) == ("Cancelled by user", "", "Sub-agent results (1 of 3 succeeded):")


def test_cancel_does_not_wait_longer_than_its_deadline() -> None:
    driver = waiting().on(UserCancelled("m"))
    driver.on(CancelDeadlinePassed(driver.gen, "m-r"))
    assert isinstance(driver.state, Idle)
    assert driver.results()[0][1].count("failed: cancelled") == 3


def test_a_completion_reads_as_agreed() -> None:
    assert agent_texts.completion("c1", outcome("c1", "All green"), 2, 5) == (
        "[SYSTEM] Child task c1 has completed successfully.\n"
        "Ran 2 turns with 5 tool iterations.\n"
        "You can continue the conversation by calling spawn_task with task_id='c1' and a new message.\n"
        "\n"
        "Final response from child:\n"
        "All green"
    )
    failed = AgentOutcome("c1", AgentStatus.FAILURE, "", "no result submitted")
    assert agent_texts.completion("c1", failed, 1, 0).splitlines()[0] == (
        "[SYSTEM] Child task c1 has failed: no result submitted."
    )
    assert "Partial output" not in agent_texts.completion("c1", failed, 1, 0)
