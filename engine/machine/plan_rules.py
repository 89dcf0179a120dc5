"""Rules for the answer to a plan: accepted, to be revised, or the end of its run."""

from __future__ import annotations

from engine.machine import texts
from engine.machine.effects import AfterRun, Effect, FinishRun, RunStatus, Save, SaveMessage, SavePlan
from engine.machine.events import PlanAnswer
from engine.machine.messages import NewMessage, Origin, Role, TextBlock, ToolResult, ToolStatus
from engine.machine.states import AwaitingApproval, Idle, ToolOrigin
from engine.machine.tooling import settle
from engine.machine.transition import Step, close_round, next_iteration, save_draft


def settle_plan(gen: int, state: AwaitingApproval, answer: PlanAnswer, message_id: str) -> Step:
    """Settle the call that showed the plan; the plan and the mode are saved in the same move."""
    call_id, run, round_ = state.round.current.id, state.run, state.round
    if answer.remarks:
        revise = ToolResult(call_id, texts.plan_revised(answer.remarks), ToolStatus.SUCCESS)
        return settle(gen, run, round_, revise, message_id)
    kept = SavePlan(answer.plan, answer.mode, answer.at)
    if round_.origin is ToolOrigin.MODEL and run.agent is None:
        if answer.answer_id:
            return _deliver_plan(gen, state, answer, message_id, kept)
        if answer.fresh is not None:
            told = ToolResult(call_id, _describe_acceptance(answer), ToolStatus.SUCCESS)
            closed: tuple[Effect, ...] = close_round(round_, message_id, told, texts.SKIPPED_PLAN)
            return next_iteration(gen, run, (kept, *closed, *save_draft(answer.fresh)))
    after = settle(gen, run, round_, ToolResult(call_id, _describe_acceptance(answer), ToolStatus.SUCCESS), message_id)
    return Step(after.state, (kept, *after.effects))


def _describe_acceptance(answer: PlanAnswer) -> str:
    return texts.plan_accepted(answer.mode, answer.plan if answer.edited else "")


def _deliver_plan(gen: int, state: AwaitingApproval, answer: PlanAnswer, message_id: str, kept: Save) -> Step:
    """End the run well, with the plan as the answer: there is no user to approve it."""
    told = ToolResult(state.round.current.id, texts.PLAN_DELIVERED, ToolStatus.SUCCESS)
    closed = close_round(state.round, message_id, told, texts.SKIPPED_PLAN)
    words = SaveMessage(NewMessage(answer.answer_id, Role.ASSISTANT, Origin.LLM, (TextBlock(answer.plan),)))
    finish = FinishRun(state.run.id, RunStatus.SUCCESS, state.run.iteration)
    return Step(Idle(gen), (kept, *closed, words, finish, AfterRun(state.run.id)))
