"""What waits for a yes or no in the other conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.executor.requests import Activity, ApprovalAnswer, ApprovalChoice, Refused
from engine.updates import Question
from phoenix_tui.features.approvals import pending
from phoenix_tui.features.sub_agents import family_of
from phoenix_tui.linear.command import LinearCommand, tell_outcome
from phoenix_tui.linear.spoken import asked
from tools.clean import clean_line

if TYPE_CHECKING:
    from phoenix_tui.linear.front import LinearFront

ANSWERS: Final = {
    "y": ApprovalChoice.ONCE,
    "s": ApprovalChoice.CONVERSATION,
    "a": ApprovalChoice.ALWAYS,
    "e": ApprovalChoice.EVERYWHERE,
    "n": ApprovalChoice.DENY,
    "r": ApprovalChoice.DENY,
}
KEEPING: Final = frozenset({ApprovalChoice.CONVERSATION, ApprovalChoice.ALWAYS, ApprovalChoice.EVERYWHERE})
"""Answers that keep a rule."""


async def answer_of(front: LinearFront, question: Question, text: str) -> ApprovalAnswer | None:
    """The answer that a letter gives; None for any other line, and for what needs a rule where there is none."""
    choice = ANSWERS.get(text.strip().lower())
    if choice is None or (choice in KEEPING and not question.rule):
        return None
    reason = await front.ask_line("Reason: ") if text.strip().lower() == "r" else ""
    return ApprovalAnswer(choice, reason, question.rule if choice in KEEPING else "")


class OthersAsk:
    """Says once that another conversation asks something."""

    def __init__(self, front: LinearFront) -> None:
        self._front = front
        self._told: set[str] = set()
        """Calls that were spoken of."""

    def follow(self, _: Activity) -> None:
        """Something changed in a conversation that is open here."""
        front = self._front
        here = front.talk.conversation.id if front.talk.conversation is not None else ""
        waiting = [one for one in pending(front.services.engine) if family_of(one.conversation) != here]
        for one in waiting:
            if one.question.call.id not in self._told:
                front.terminal.ring()
                front.say(f"Another conversation asks, {one.title}: {_words(one.question)}. /approvals answers it.")
        self._told = {one.question.call.id for one in waiting}


async def _approvals(front: LinearFront, _: str) -> None:
    waiting = pending(front.services.engine)
    if not waiting:
        front.say("Nothing waits for your approval.")
        return
    chosen = await front.choose("They ask:", [f"{one.title}: {_words(one.question)}" for one in waiting])
    if chosen is None:
        return
    one = waiting[chosen]
    front.say(*asked(one.question))
    answer = await answer_of(front, one.question, await front.ask_line("Answer, or Enter for later: "))
    if answer is None:
        front.say("Not answered.")
        return
    outcome = await one.conversation.answer(one.question.call.id, answer)
    tell_outcome(front, outcome, "Answered." if not isinstance(outcome, Refused) else "")


def _words(question: Question) -> str:
    return f"{clean_line(question.call.name)}, {clean_line(question.request.summary)}"


COMMANDS: Final[dict[str, LinearCommand]] = {
    "approvals": LinearCommand("what waits for a yes or no in any conversation, answered from here", _approvals),
}
