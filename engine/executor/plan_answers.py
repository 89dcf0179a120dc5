"""Turns the user's answer to a plan into the event that settles its call."""

from __future__ import annotations

from typing import Final

from engine.context.todo_notes import with_plan
from engine.executor.pruning import facts_of
from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice
from engine.executor.session import Session
from engine.executor.window import tokens_after
from engine.machine.events import ApprovalAnswered, PlanAnswer, Verdict
from engine.machine.views import (
    MOST_EARLIER,
    CompactionCause,
    CompactionDraft,
    CompactionKind,
    ContextView,
    EarlierView,
)
from engine.records import PermissionMode
from engine.updates import Question
from tools.exit_plan import why_no_plan

NO_REMARKS: Final = "Say what should be different about the plan."
MODES: Final = {
    PlanChoice.ACCEPT_EDITS: PermissionMode.ACCEPT_EDITS,
    PlanChoice.FRESH: PermissionMode.ACCEPT_EDITS,
    PlanChoice.ASK: PermissionMode.ASK,
}
"""Permission mode after each yes."""
ACCEPTED: Final = "Plan approved; permission mode {mode}"
FRESH: Final = (
    "The user approved a plan and left out the messages before it. Carry the plan out; read again what you need."
)
FRESH_NOTE: Final = "Context cleared but for the plan · {count} messages left out; /context restores them"


def choice_of(answer: ApprovalAnswer) -> PlanChoice:
    """The answer to a plan, also where only yes or no can be said."""
    if answer.plan_choice is not None:
        return answer.plan_choice
    if answer.choice is not ApprovalChoice.DENY:
        return PlanChoice.ASK
    return PlanChoice.REVISE if answer.reason.strip() else PlanChoice.LEAVE


def refusal_of(answer: ApprovalAnswer) -> str:
    """Reason why an answer to a plan cannot be taken; empty when it can."""
    if choice_of(answer) is PlanChoice.REVISE:
        return "" if answer.reason.strip() else NO_REMARKS
    return why_no_plan(answer.plan) if answer.plan else ""


def plan_answered(session: Session, question: Question, answer: ApprovalAnswer) -> ApprovalAnswered:
    """The event of an answer to a plan, built in the move that takes it."""
    choice, call_id, message_id = choice_of(answer), question.call.id, session.ports.ids.new()
    if choice is PlanChoice.LEAVE:
        return ApprovalAnswered(call_id, Verdict.DENY, message_id)
    if choice is PlanChoice.REVISE:
        return ApprovalAnswered(call_id, Verdict.DENY, message_id, plan=PlanAnswer(remarks=answer.reason.strip()))
    plan, at = answer.plan or question.request.plan, session.record.message_count
    if choice is PlanChoice.DELIVER:
        delivered = PlanAnswer(plan, answer_id=session.ports.ids.new(), at=at)
        return ApprovalAnswered(call_id, Verdict.ALLOW, message_id, plan=delivered)
    mode, note = MODES[choice], ACCEPTED.format(mode=MODES[choice].value)
    fresh = _fresh(session, plan, at) if choice is PlanChoice.FRESH else None
    edited = bool(answer.plan) and answer.plan != question.request.plan
    accepted = PlanAnswer(plan, edited, mode.value, fresh=fresh, at=at)
    return ApprovalAnswered(call_id, Verdict.ALLOW, message_id, note=note, plan=accepted)


def _fresh(session: Session, plan: str, at: int) -> CompactionDraft:
    """The view behind the row and the result of this very move, which holds the plan alone."""
    record = session.record
    earlier = EarlierView(record.summary, record.context_start_seq, record.context_tokens, record.context_estimated)
    all_earlier = (*record.earlier_views, earlier)[-MOST_EARLIER:]
    view = ContextView(FRESH, at + BEFORE_FRESH + 1, record.omitted, all_earlier)
    tokens = tokens_after(session, (), with_plan(view, plan, at))
    left_out = at - max(record.context_start_seq - 1, 0)
    facts = facts_of(session, CompactionCause.ASKED, CompactionKind.SUMMARY, view, tokens, left_out)
    return CompactionDraft(view, tokens, FRESH_NOTE.format(count=left_out), facts)


BEFORE_FRESH: Final = 2
"""Messages that the move of an accepted plan stores ahead of a fresh view: the row about it, and the results."""
