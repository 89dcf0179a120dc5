"""Words about a plan that waits for an answer, for both front ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.executor.requests import ApprovalAnswer


PLAN_LETTERS: Final = "aysrn"
"""The letters of the answers to a plan, in the order of their numbers."""
PLAN_WORDS: Final = {
    "a": "approve, accept edits",
    "y": "approve, ask before each change",
    "s": "approve, start with a fresh context",
    "r": "revise: say how",
    "n": "not now, stay in plan mode",
}
EDITS_PLAN: Final = "edit the plan first"
PROPOSES: Final = " proposes a plan"


def plan_answer(letter: str, plan: str = "", remarks: str = "") -> ApprovalAnswer | None:
    """The answer of a letter, with the plan as the user changed it; None for a letter without an answer."""
    from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice  # noqa: PLC0415 - not for the words

    yes = {"a": PlanChoice.ACCEPT_EDITS, "y": PlanChoice.ASK, "s": PlanChoice.FRESH}
    if letter in yes:
        return ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=yes[letter], plan=plan)
    if letter == "n":
        return ApprovalAnswer(ApprovalChoice.DENY, plan_choice=PlanChoice.LEAVE)
    if letter == "r" and remarks.strip():
        return ApprovalAnswer(ApprovalChoice.DENY, reason=remarks, plan_choice=PlanChoice.REVISE)
    return None
