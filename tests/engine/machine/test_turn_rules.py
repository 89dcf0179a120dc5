"""Messages, turns, refusals, answers to plans, decisions of a supervisor (SPEC BED-002, STM-01, STM-02, T-TURN)."""

from __future__ import annotations

import pytest

from engine.machine import texts
from engine.machine.effects import (
    AbortLlm,
    AfterRun,
    Compact,
    DrainInbox,
    ExecTool,
    FinishRun,
    Notice,
    Refuse,
    RequestLlm,
    RunStatus,
    SaveMessage,
    SaveNotice,
    SavePlan,
    SaveRoute,
    SaveTodos,
    SaveToolResult,
    SaveView,
    StartRun,
    Strategy,
)
from engine.machine.events import (
    ApprovalAnswered,
    ApprovalNeeded,
    InboxArrived,
    LlmFailed,
    PlanAnswer,
    RetryAsked,
    RouteDecided,
    ToolFinished,
    UserCancelled,
    UserMessage,
    UserShell,
    Verdict,
)
from engine.machine.messages import (
    LastMessage,
    NewMessage,
    Origin,
    Role,
    StopReason,
    TextBlock,
    ToolCall,
    ToolStatus,
    ToolUseBlock,
)
from engine.machine.states import (
    AwaitingApproval,
    AwaitingLlm,
    Cancelling,
    CompactingContext,
    Completed,
    Errored,
    Idle,
    Requesting,
    ToolExecuting,
    ToolOrigin,
)
from engine.machine.transition import opens_turn
from engine.machine.views import ContextView
from tests.support.machine import compacted
from tests.support.moves import Driver, calls, done, reply, user
from tools.displays import TodoItem, TodoList


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


TODOS = TodoList((TodoItem("a"),), at=3)


def asking(*ids: str) -> Driver:
    driver = Driver().on(user()).on(reply(1, *calls(*ids), stop=StopReason.TOOL_USE))
    return driver.on(ApprovalNeeded(driver.gen, ids[0], "plan"))


def answered(driver: Driver, plan: PlanAnswer, note: str = "Plan approved") -> Driver:
    return driver.on(ApprovalAnswered("t1", Verdict.ALLOW, "m-r", note=note, plan=plan))


def test_an_accepted_plan_is_saved_with_its_mode_and_its_result_in_one_step() -> None:
    driver = answered(asking("t1"), PlanAnswer("the plan", mode="ask", at=2))
    assert driver.effect(SavePlan) == SavePlan("the plan", "ask", 2)
    assert driver.effect(SaveNotice).text == "Plan approved"
    assert driver.results() == [("t1", texts.plan_accepted("ask", ""), False)]
    assert driver.effect(RequestLlm).iteration == 2


def test_calls_behind_an_accepted_plan_run_and_are_decided_anew() -> None:
    driver = answered(asking("t1", "t2"), PlanAnswer("the plan", mode="ask"))
    assert driver.effect(ExecTool).call.id == "t2"
    assert not driver.effect(ExecTool).approved
    assert driver.has(SavePlan)


def test_a_changed_plan_is_in_the_result() -> None:
    driver = answered(asking("t1"), PlanAnswer("mine", edited=True, mode="ask"))
    assert driver.results() == [("t1", texts.plan_accepted("ask", "mine"), False)]


def test_remarks_are_the_result_and_nothing_is_saved_of_the_plan() -> None:
    driver = answered(asking("t1"), PlanAnswer(remarks="add tests"), note="")
    assert not driver.has(SavePlan)
    assert driver.results() == [("t1", texts.plan_revised("add tests"), False)]


def test_a_fresh_context_skips_what_waits_and_saves_the_view_behind_the_results() -> None:
    view = ContextView("fresh", 9)
    driver = answered(asking("t1", "t2"), PlanAnswer("the plan", mode="auto", fresh=compacted(view, 40, "cleared")))
    assert driver.results() == [
        ("t1", texts.plan_accepted("auto", ""), False),
        ("t2", texts.SKIPPED_PLAN, True),
    ]
    kinds = [type(effect) for effect in driver.effects]
    assert kinds.index(SaveMessage) < kinds.index(SaveView) < kinds.index(RequestLlm)
    stored = [one for one in driver.effects if isinstance(one, SaveMessage | SaveNotice)]
    assert [type(one) for one in stored] == [SaveNotice, SaveMessage, SaveNotice], "two rows come ahead of the view"


def test_a_delivered_plan_is_the_answer_of_a_run_that_ended_well() -> None:
    driver = answered(asking("t1", "t2"), PlanAnswer("the plan", answer_id="m-a"), note="")
    assert driver.state == Idle(driver.gen)
    assert (driver.saved[-1].role, driver.saved[-1].blocks) == (Role.ASSISTANT, (TextBlock("the plan"),))
    assert [one.result.status for one in driver.effects if isinstance(one, SaveToolResult)] == [
        ToolStatus.SUCCESS,
        ToolStatus.SKIPPED,
    ]
    assert driver.effect(FinishRun).status is RunStatus.SUCCESS
    assert driver.has(AfterRun)


def test_an_answer_to_another_call_changes_nothing() -> None:
    driver = asking("t1")
    before = driver.state
    driver.on(ApprovalAnswered("t9", Verdict.ALLOW, "m-r", plan=PlanAnswer("the plan", mode="auto")))
    assert isinstance(before, AwaitingApproval)
    assert driver.state == before
    assert driver.effects == (Refuse(texts.NOTHING_TO_ANSWER),)


@pytest.mark.parametrize("stop_run", [False, True])
def test_a_list_is_saved_with_the_result_that_wrote_it(stop_run: bool) -> None:
    driver = Driver().on(user()).on(reply(1, *calls("t1"), stop=StopReason.TOOL_USE))
    driver.on(ToolFinished(driver.gen, done("t1"), "m-r", stop_run=stop_run, todos=TODOS))
    assert driver.effect(SaveTodos) == SaveTodos(TODOS)
    assert driver.effect(SaveToolResult).result.call_id == "t1"


def test_a_late_result_saves_no_list() -> None:
    driver = Driver().on(user()).on(reply(1, *calls("t1"), stop=StopReason.TOOL_USE))
    driver.on(ToolFinished(driver.gen - 1, done("t1"), "m-r", todos=TODOS))
    assert driver.effects == ()


def routing(*, compact_due: bool = False) -> Driver:
    """A conversation whose supervisor decides."""
    message = NewMessage("m", Role.USER, Origin.HUMAN, (TextBlock("hi"),))
    sent = UserMessage(message, LastMessage.NONE, "run", 250, supervisor=True, compact_due=compact_due)
    return Driver().on(sent)


def test_a_decision_is_recorded_and_told_of_before_the_main_model_is_asked() -> None:
    driver = routing()
    driver.on(RouteDecided(driver.gen, "m2", decision_json='{"confidence": 0.2}', note="Routing: alone"))
    assert driver.effect(SaveRoute) == SaveRoute("run", Strategy.SINGLE, '{"confidence": 0.2}')
    assert driver.effect(SaveNotice).text == "Routing: alone"
    assert driver.has(RequestLlm)


def test_a_decision_for_agents_becomes_a_call_of_the_supervisor_that_runs_unasked_after_a_yes() -> None:
    driver = routing()
    call = ToolCall("route_1", "spawn_agents", "{}")
    driver.on(RouteDecided(driver.gen, "m2", call, Strategy.PARALLEL, "{}", "Routing: 2 agents", approved=True))
    saved = driver.effect(SaveMessage).message
    assert (saved.id, saved.role, saved.origin) == ("m2", Role.ASSISTANT, Origin.SUBAGENT)
    assert saved.blocks == (ToolUseBlock("route_1", "spawn_agents", "{}"),)
    assert driver.effect(SaveRoute).strategy is Strategy.PARALLEL
    assert driver.effect(ExecTool).approved
    assert isinstance(driver.state, ToolExecuting)
    assert driver.state.run.iteration == 1


def test_a_full_window_is_summarized_after_the_decision() -> None:
    driver = routing(compact_due=True)
    driver.on(RouteDecided(driver.gen, "m2"))
    assert driver.has(Compact)
    assert isinstance(driver.state, AwaitingLlm)
    assert driver.state.phase == CompactingContext()


def test_a_late_decision_changes_nothing() -> None:
    driver = routing()
    gen = driver.gen
    driver.on(UserCancelled("m3"))
    assert driver.has(AbortLlm)
    idle = driver.state
    driver.on(RouteDecided(gen, "m2", ToolCall("route_1", "spawn_agents", "{}")))
    assert driver.state == idle
