"""Answers to a plan, and lists written by tools: what a step saves with them."""

from __future__ import annotations

import pytest

from engine.machine import texts
from engine.machine.effects import (
    AfterRun,
    ExecTool,
    FinishRun,
    Refuse,
    RequestLlm,
    RunStatus,
    SaveMessage,
    SaveNotice,
    SavePlan,
    SaveTodos,
    SaveToolResult,
    SaveView,
)
from engine.machine.events import ApprovalAnswered, ApprovalNeeded, PlanAnswer, ToolFinished, Verdict
from engine.machine.messages import Role, StopReason, TextBlock, ToolStatus
from engine.machine.states import AwaitingApproval, Idle
from engine.machine.views import ContextView
from tests.support.machine import compacted
from tests.support.moves import Driver, calls, done, reply, user
from tools.displays import TodoItem, TodoList

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
