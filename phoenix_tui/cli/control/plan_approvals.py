"""A host's yes to a plan: the mode that it names, and the plan as it changed it."""

from __future__ import annotations

from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice
from engine.records import PermissionMode
from engine.updates import Question
from tools.contract import JsonValue


def approved_plan(question: Question, updated: JsonValue, mode: PermissionMode | None) -> ApprovalAnswer:
    """The answer, for a host that sets `mode` with it; a plan that cannot be one is refused by whoever takes it."""
    given = updated.get("plan") if isinstance(updated, dict) else None
    plan = given if isinstance(given, str) and given != question.request.plan else ""
    choice = PlanChoice.ACCEPT_EDITS if mode is PermissionMode.ACCEPT_EDITS else PlanChoice.ASK
    return ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=choice, plan=plan)
