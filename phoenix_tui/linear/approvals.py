"""Open questions of the other conversations."""

from __future__ import annotations

from typing import Final

from engine.executor.requests import Activity, ApprovalAnswer, ApprovalChoice, Refused
from engine.updates import Question
from phoenix_tui.features.approvals import NOTHING_WAITS, asked_elsewhere, pending
from phoenix_tui.features.sub_agents import family_of
from phoenix_tui.linear.asked_questions import form_answer
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.linear.plan_edit import edited
from phoenix_tui.linear.plan_question import plan_answer_of
from phoenix_tui.linear.question_lines import question_lines
from tools.call_titles import call_title
from tools.clean import clean_line

ANSWERS: Final = {
    "y": ApprovalChoice.ONCE,
    "s": ApprovalChoice.CONVERSATION,
    "a": ApprovalChoice.ALWAYS,
    "e": ApprovalChoice.EVERYWHERE,
    "n": ApprovalChoice.DENY,
    "r": ApprovalChoice.DENY,
}
ANSWER: Final = "Answer, or Enter for later"
KEEPING: Final = frozenset({ApprovalChoice.CONVERSATION, ApprovalChoice.ALWAYS, ApprovalChoice.EVERYWHERE})
"""Answers that keep a rule."""


async def answer_of(ctx: LinearContext, question: Question, text: str) -> ApprovalAnswer | None:
    """The answer of a letter; None for any other line, and for an answer that needs a missing rule."""
    if question.request.plan:
        return await plan_answer_of(ctx, text, ctx.active.plans.text_of(question))
    if question.request.questions:
        return await form_answer(ctx, question, text) if text.strip() else None
    choice = ANSWERS.get(text.strip().lower())
    if choice is None or (choice in KEEPING and not question.rule):
        return None
    reason = await ctx.ask_line("Reason") if text.strip().lower() == "r" else ""
    return ApprovalAnswer(choice, reason, question.rule if choice in KEEPING else "")


class ApprovalNotifier:
    """Says once that another conversation asks something."""

    def __init__(self, ctx: LinearContext) -> None:
        self._ctx = ctx
        self._told: set[str] = set()
        """Calls that were spoken of."""

    def follow(self, _: Activity) -> None:
        """Report new questions after a change in a conversation that is open here."""
        ctx = self._ctx
        here = ctx.conversation.id if ctx.conversation is not None else ""
        waiting = [one for one in pending(ctx.services.engine) if family_of(one.conversation) != here]
        for one in waiting:
            if one.question.call.id not in self._told:
                ctx.terminal.ring()
                ctx.say(f"Another conversation, {one.title}, asks: {_words(one.question)}. /approvals answers it.")
        self._told = {one.question.call.id for one in waiting}


async def _approvals(ctx: LinearContext, _: str) -> None:
    waiting = pending(ctx.services.engine)
    elsewhere = await asked_elsewhere(ctx.services.engine)
    if not waiting:
        ctx.say(NOTHING_WAITS, *elsewhere)
        return
    ctx.say(*elsewhere)
    chosen = await ctx.choose("Pending approvals:", [f"{one.title}: {_words(one.question)}" for one in waiting])
    if chosen is None:
        return
    one = waiting[chosen]
    ctx.say(*question_lines(ctx.active.plans.of(one.question)))
    text = await ctx.ask_line(ANSWER)
    while await edited(ctx, one.question, text):
        text = await ctx.ask_line(ANSWER)
    answer = await answer_of(ctx, one.question, text)
    if answer is None:
        ctx.say("Not answered.")
        return
    outcome = await one.conversation.answer(one.question.call.id, answer)
    ctx.say_outcome(outcome, "Answered." if not isinstance(outcome, Refused) else "")


def _words(question: Question) -> str:
    return clean_line(call_title(question.call.name, question.call.input_json, question.request.summary, ", "))


RUNS: Final[dict[str, LineCommand]] = {"approvals": _approvals}
