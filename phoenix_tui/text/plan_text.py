"""Words about a plan that waits for an answer, for both front ends."""

from __future__ import annotations

from typing import Final

from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice

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
_CHOICES: Final = {
    "a": PlanChoice.ACCEPT_EDITS,
    "y": PlanChoice.ASK,
    "s": PlanChoice.FRESH,
}


def plan_answer(letter: str, plan: str = "", remarks: str = "") -> ApprovalAnswer | None:
    """The answer of a letter, with the plan as the user changed it; None for a letter without an answer."""
    if letter in _CHOICES:
        return ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=_CHOICES[letter], plan=plan)
    if letter == "n":
        return ApprovalAnswer(ApprovalChoice.DENY, plan_choice=PlanChoice.LEAVE)
    if letter == "r" and remarks.strip():
        return ApprovalAnswer(ApprovalChoice.DENY, reason=remarks, plan_choice=PlanChoice.REVISE)
    return None
