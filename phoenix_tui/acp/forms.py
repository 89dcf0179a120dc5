"""Questions of the agent (`ask_user`) as a form, or one after the other as a choice of options."""

from __future__ import annotations

from typing import Any, Final, cast

from acp.schema import ElicitationSchema, PermissionOption, ToolCallUpdate

from engine.executor.requests import ApprovalAnswer, ApprovalChoice
from engine.updates import Question
from phoenix_tui.acp.client import Client
from phoenix_tui.acp.tool_calls import text_part
from tools.asked_questions import AskedQuestion, lines_of
from tools.clean import clean

DECLINE: Final = "decline"
OTHER: Final = "other"


async def answers_by_form(client: Client, session_id: str, question: Question) -> ApprovalAnswer:
    """Ask all questions in one form; its fields are named q1, q2 …, own words q1_other. Raises as `Client.permit`."""
    asked = question.request.questions
    message = "\n".join(one.question for one in asked)
    content = await client.elicit(session_id, question.call.id, message, form_of(asked))
    if content is None:
        return ApprovalAnswer(ApprovalChoice.DENY)
    return ApprovalAnswer(ApprovalChoice.ONCE, answers=answers_in(asked, content))


async def answers_by_options(client: Client, session_id: str, question: Question) -> ApprovalAnswer | None:
    """Ask each question as a choice of one of its options; None cancels. Raises as `Client.permit`."""
    answers: list[tuple[str, ...]] = []
    for place, asked in enumerate(question.request.questions):
        call = ToolCallUpdate(
            tool_call_id=question.call.id,
            title=asked.question,
            kind="other",
            status="pending",
            content=[text_part("\n".join(lines_of([asked])))],
        )
        options = [
            PermissionOption(option_id=f"{place}.{number}", name=option.label, kind="allow_once")
            for number, option in enumerate(asked.options)
        ]
        decline = PermissionOption(option_id=DECLINE, name="Decline to answer", kind="reject_once")
        chosen = await client.permit(session_id, call, [*options, decline])
        if chosen is None:
            return None
        labels = {one.option_id: one.name for one in options}
        if chosen not in labels:
            return ApprovalAnswer(ApprovalChoice.DENY)
        answers.append((labels[chosen],))
    return ApprovalAnswer(ApprovalChoice.ONCE, answers=tuple(answers))


def form_of(asked: tuple[AskedQuestion, ...]) -> ElicitationSchema:
    """A form with a choice, and a line for own words, for each question."""
    fields: dict[str, Any] = {}
    for number, one in enumerate(asked, 1):
        choices = [{"const": option.label, "title": _title(option.label, option.description)} for option in one.options]
        facts = {"title": one.header, "description": one.question}
        if one.multi:
            fields[f"q{number}"] = facts | {"type": "array", "items": {"anyOf": choices}}
        else:
            fields[f"q{number}"] = facts | {"type": "string", "oneOf": choices}
        own = {"type": "string", "title": f"{one.header}: in your own words"}
        fields[f"q{number}_{OTHER}"] = own
    return ElicitationSchema.model_validate({"type": "object", "properties": fields})


def answers_in(asked: tuple[AskedQuestion, ...], content: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The answers of a form; own words count where there are any, with several choices beside them."""
    answers: list[tuple[str, ...]] = []
    for number, one in enumerate(asked, 1):
        given = content.get(f"q{number}")
        labels = tuple(label for label in one.labels if _is_chosen(label, given))
        own = content.get(f"q{number}_{OTHER}")
        words = (clean(own).strip(),) if isinstance(own, str) and own.strip() else ()
        answers.append((*labels, *words) if one.multi else words or labels[:1])
    return tuple(answers)


def _is_chosen(label: str, given: object) -> bool:
    return label in cast("list[object]", given) if isinstance(given, list) else label == given


def _title(label: str, description: str) -> str:
    return f"{label}: {description}" if description else label
