"""Questions about calls, put to the host as `can_use_tool`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, field

from engine.conversation import Conversation
from engine.executor.call_arguments import parse_arguments
from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice, Refused
from engine.updates import Question
from phoenix_tui.cli.control.frames import is_too_large
from phoenix_tui.cli.control.host import Asker, HostError
from phoenix_tui.cli.control.host_rules import suggestion
from phoenix_tui.cli.control.names import foreign_call, native_call
from phoenix_tui.cli.control.permission_updates import PermissionUpdates
from phoenix_tui.cli.control.plan_approvals import approved_plan
from phoenix_tui.cli.headless import why_denied
from phoenix_tui.features.asking_run import run_behind
from tools.asked_questions import AskedQuestion
from tools.contract import JsonObject, JsonValue, ToolClass, ToolInputError

log = logging.getLogger(__name__)

ANSWER_WITHIN: Final = 3_600.0
"""Seconds for an answer to a question about a call; a host asks a person."""
MOST_SHOWN: Final = 4_096
"""Characters of an input that is too large for a frame; the host sees its beginning."""
NO_ANSWERS: Final = "The host gave no answers."
SEVERAL: Final = ", "
"""Sign between several chosen labels."""
TOO_LARGE_TO_CHANGE: Final = "The input is too large for a frame, so the host can allow or deny it, but not change it."


class HostApprovals(Struct, eq=False):
    """Answers the questions of a conversation and of its sub-agents."""

    root: Conversation
    """The conversation of the connection."""
    asker: Asker
    updates: PermissionUpdates
    says_waiting: Callable[[bool], None]
    """Callback for True while the host is asked."""
    asks: bool = False
    """False where no host can be asked: every question is a no."""
    _open: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    """Tasks that wait for the host, by conversation."""
    _answering: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    def follow(self, conversation: Conversation, question: Question | None) -> None:
        """Ask about a question that opens; withdraw one that something else has settled."""
        before = self._open.pop(conversation.id, None)
        if before is not None and before not in self._answering:
            before.cancel()
        if question is not None:
            task = asyncio.ensure_future(self._settle(conversation, question))
            self._open[conversation.id] = task
            task.add_done_callback(self._ended)

    def close(self) -> None:
        """Withdraw every question."""
        for task in self._open.values():
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a question to the host failed", exc_info=error)

    async def _settle(self, conversation: Conversation, question: Question) -> None:
        answer, later = await self._answer(conversation, question)
        task = asyncio.current_task()
        if task is not None:
            self._answering.add(task)
        if answer is None:
            run_behind(conversation, self.root).cancel()
            return
        receipt = await conversation.answer(question.call.id, answer)
        if isinstance(receipt, Refused) and answer.choice is ApprovalChoice.ONCE:
            await conversation.answer(question.call.id, _no(question, receipt.reason))
            return
        await self.updates.apply(later)
        accepts = question.request.plan and answer.choice is ApprovalChoice.ONCE
        if accepts and conversation.record.agent is None and self.updates.mode_of(later) is None:
            await self.updates.change_mode(conversation.record.permission_mode)  # reports the mode of the answer

    async def _answer(self, conversation: Conversation, question: Question) -> tuple[ApprovalAnswer | None, JsonValue]:
        """The answer, None where the host ends the run with it; and permission updates to apply behind it."""
        if not self.asks or self.asker.is_gone:
            return _no(question, why_denied(conversation.record, question)), None
        request, sent = can_use_tool(conversation, question)
        self.says_waiting(True)
        try:
            given = await self.asker.ask(request, ANSWER_WITHIN)
        except HostError as error:
            return _no(question, str(error)), None
        finally:
            self.says_waiting(False)
        if given.get("behavior") != "allow":
            message = given.get("message")
            told = message if isinstance(message, str) and message else "The host denied it without a reason."
            return (None if given.get("interrupt") is True else _no(question, told)), None
        updates, updated = given.get("updatedPermissions"), given.get("updatedInput")
        if question.request.plan:  # the answer itself sets a mode
            return approved_plan(question, updated, self.updates.mode_of(updates)), updates
        await self.updates.apply(updates)
        return self._allowed(conversation, question, sent, updated), None

    @staticmethod
    def _allowed(
        conversation: Conversation, question: Question, sent: JsonObject, updated: JsonValue
    ) -> ApprovalAnswer:
        if question.request.questions:
            return _told(question, updated)
        if not isinstance(updated, dict) or updated == sent:
            return _yes()
        if "phoenix_left_out" in sent:
            return _no(question, TOO_LARGE_TO_CHANGE)
        foreign, _ = _foreign(conversation, question)
        try:
            name, args = native_call(foreign, updated, conversation.record.cwd)
        except ToolInputError as error:
            return _no(question, f"The host changed the input, and {error}")
        if name != question.call.name:
            return _no(question, f"The host changed the input to one of {name}, which is another tool.")
        return _yes(args)


def can_use_tool(conversation: Conversation, question: Question) -> tuple[JsonObject, JsonObject]:
    """The request about a question, and the input as it is sent."""
    name, whole = _foreign(conversation, question)
    suggestions: list[JsonValue] = []
    if (kept := suggestion(question.rule, name)) is not None:
        suggestions.append(kept)
    if question.tool_class is ToolClass.EDIT:
        suggestions.append({"type": "setMode", "mode": "acceptEdits", "destination": "session"})
    request: JsonObject = {
        "subtype": "can_use_tool",
        "tool_name": name,
        "input": whole,
        "tool_use_id": question.call.id,
        "display_name": name,
        "title": question.request.summary,
        "description": question.request.why,
        "decision_reason": question.reason,
        "permission_suggestions": suggestions,
    }
    if question.request.questions or question.request.plan:
        request["requires_user_interaction"] = True
    if conversation.record.agent is not None:
        request["agent_id"] = conversation.id
    outside = [path for path in question.request.paths if not path.is_relative_to(conversation.record.cwd)]
    if outside:
        request["blocked_path"] = str(outside[0])
    if not is_too_large(request):
        return request, whole
    args: JsonObject = {
        "phoenix_left_out": len(question.call.input_json),
        "beginning": question.call.input_json[:MOST_SHOWN],
    }
    request["input"] = args
    return request, args


def _foreign(conversation: Conversation, question: Question) -> tuple[str, JsonObject]:
    if question.server:
        return foreign_call("ask_user", _form(question.request.questions), conversation.record.cwd)
    args = parse_arguments(question.call.input_json)
    try:
        return foreign_call(question.call.name, args, conversation.record.cwd)
    except ToolInputError:
        return question.call.name, args


def _form(questions: Sequence[AskedQuestion]) -> JsonObject:
    """A question that no call of the model asks, as one of `ask_user`."""
    forms: list[JsonValue] = []
    for asked in questions:
        options: list[JsonValue] = [{"label": one.label, "description": one.description} for one in asked.options]
        forms.append({
            "question": asked.question,
            "header": asked.header,
            "options": options,
            "multiSelect": asked.multi,
        })
    return {"questions": forms}


def _yes(args: JsonObject | None = None) -> ApprovalAnswer:
    return ApprovalAnswer(ApprovalChoice.ONCE, input=args)


def _told(question: Question, updated: JsonValue) -> ApprovalAnswer:
    """The answers to questions of `ask_user`, which a host sends by the words of each question."""
    given = updated.get("answers") if isinstance(updated, dict) else None
    if not isinstance(given, dict) or not given:
        return _no(question, NO_ANSWERS)
    answers = tuple(_chosen(asked, given.get(asked.question)) for asked in question.request.questions)
    return ApprovalAnswer(ApprovalChoice.ONCE, answers=answers)


def _chosen(asked: AskedQuestion, value: JsonValue) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(one for one in value if isinstance(one, str))
    if not isinstance(value, str) or not value:
        return ()
    several = tuple(value.split(SEVERAL)) if asked.multi else ()
    return several if several and set(several) <= set(asked.labels) else (value,)


def _no(question: Question, reason: str) -> ApprovalAnswer:
    if question.request.plan:
        choice = PlanChoice.REVISE if reason else PlanChoice.LEAVE
        return ApprovalAnswer(ApprovalChoice.DENY, reason=reason, plan_choice=choice)
    return ApprovalAnswer(ApprovalChoice.DENY, reason=reason)
