"""Rules for a tool call that asks the user: the question, its answer, and a mode that makes it needless."""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from engine.machine import plan_rules, texts
from engine.machine.effects import AskApproval, Effect, MarkToolCall, Refuse, SaveNotice
from engine.machine.events import ApprovalAnswered, ApprovalLapsed, ApprovalNeeded, Verdict
from engine.machine.messages import ToolResult, ToolStatus
from engine.machine.states import AwaitingApproval, State, ToolExecuting
from engine.machine.tooling import settle
from engine.machine.transition import Step, start_current

AskingEvent = ApprovalNeeded | ApprovalAnswered | ApprovalLapsed


def step(state: State, event: AskingEvent) -> Step:
    """Route one event around a question; an event of another call changes nothing."""
    match event:
        case ApprovalNeeded():
            return _ask(state, event)
        case ApprovalAnswered():
            return _handle_answer(state, event)
        case ApprovalLapsed():
            if not isinstance(state, AwaitingApproval) or state.round.current.id != event.call_id:
                return Step(state)
            return start_current(state.gen + 1, state.run, state.round, _row(event.note))
        case _:
            assert_never(event)


def _ask(state: State, event: ApprovalNeeded) -> Step:
    """Ask; an open question continues with another reason."""
    if not isinstance(state, ToolExecuting | AwaitingApproval) or state.round.current.id != event.call_id:
        return Step(state)
    call = state.round.current
    ask = AskApproval(call, event.reason)
    if isinstance(state, AwaitingApproval):
        return Step(replace(state, reason=event.reason), (ask,))
    after = AwaitingApproval(state.gen + 1, state.run, state.round, event.reason)
    return Step(after, (MarkToolCall(call.id, ToolStatus.AWAITING_APPROVAL), ask))


def _handle_answer(state: State, event: ApprovalAnswered) -> Step:
    if not isinstance(state, AwaitingApproval) or state.round.current.id != event.call_id:
        return Step(state, (Refuse(texts.NOTHING_TO_ANSWER),))
    gen, call = state.gen + 1, state.round.current
    note = _row(event.note)
    if event.plan is not None:
        after = plan_rules.settle_plan(gen, state, event.plan, event.message_id)
        return Step(after.state, (*note, *after.effects))
    if event.told:
        status = ToolStatus.SUCCESS if event.verdict is Verdict.ALLOW else ToolStatus.ERROR
        after = settle(gen, state.run, state.round, ToolResult(call.id, event.told, status), event.message_id)
        return Step(after.state, (*note, *after.effects))
    match event.verdict:
        case Verdict.ALLOW:
            return start_current(gen, state.run, state.round, note, approved=True)
        case Verdict.DENY:
            refused = ToolResult(call.id, texts.describe_denial(call.name, event.reason), ToolStatus.ERROR)
            after = settle(gen, state.run, state.round, refused, event.message_id)
            return Step(after.state, (*note, *after.effects))
        case _:
            assert_never(event.verdict)


def _row(note: str) -> tuple[Effect, ...]:
    return (SaveNotice(note),) if note else ()
