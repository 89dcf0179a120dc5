"""Answers to open questions, and questions that a change of the limits answers."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from msgspec.structs import replace

from engine.executor.approving import limits_of, name_call
from engine.executor.guarding import check_message
from engine.executor.ready_calls import decide_call, prepare, rewrite
from engine.executor.requests import (
    Accepted,
    ApprovalAnswer,
    ApprovalChoice,
    InboxEntry,
    Priority,
    Receipt,
    Refused,
)
from engine.executor.session import LAST_MESSAGES, Session
from engine.executor.session_parts import differences
from engine.executor.user_requests import send
from engine.machine import texts
from engine.machine.effects import ExecTool
from engine.machine.events import ApprovalAnswered, ApprovalLapsed, ApprovalNeeded, Verdict
from engine.machine.messages import LastMessage, Role, ToolCall, ToolResultBlock, ToolStatus
from engine.machine.states import AwaitingApproval, Errored, Idle, State
from engine.machine.texts import ALLOWED_BY
from engine.permissions.policy import Allow, Ask, Decision, Limits
from engine.ports.profiles import ASK_TOOL
from engine.updates import ApprovalAsked, Question
from tools.contract import JsonObject, ToolInputError
from tools.displays import Answers, clean_answers, format_answers, why_no_answers

CHOOSE: Final = "Choose an answer first, or decline to answer."


def check_answers(session: Session, question: Question, answer: ApprovalAnswer) -> str:
    """Reason why an answer to questions cannot be taken; empty when it can."""
    if answer.choice is ApprovalChoice.DENY:
        return ""
    given = clean_answers(answer.answers)
    if not any(given):
        return CHOOSE
    asked = question.request.questions
    if why := why_no_answers(asked, given):
        return why
    own = (text for one, chosen in zip(asked, given, strict=True) for text in chosen if text not in one.labels)
    return next((why for text in own if (why := check_message(session, text))), "")


def build_answer_event(session: Session, question: Question, answer: ApprovalAnswer) -> ApprovalAnswered:
    """The event of an answer to questions; a no is an error result, and the run goes on (SPEC REQ-ASK)."""
    call_id, message_id = question.call.id, session.ports.ids.new()
    if answer.choice is ApprovalChoice.DENY:
        told = texts.describe_unanswered(answer.reason.strip())
        return ApprovalAnswered(call_id, Verdict.DENY, message_id, told=told)
    return ApprovalAnswered(
        call_id, Verdict.ALLOW, message_id, told=_format_answers(question, clean_answers(answer.answers))
    )


async def answer_left_open(session: Session, question: Question, answer: ApprovalAnswer) -> Receipt:
    """Send the answer to a question whose run has ended as a message of the user; a no closes it."""
    if answer.choice is ApprovalChoice.DENY and not answer.reason.strip():
        if session.questions.open is not None and session.questions.open.left_open:
            session.questions.open = None
            session.publisher.publish(ApprovalAsked(None))
        return Accepted()
    if why := check_answers(session, question, answer):
        return Refused(why)
    text = answer.reason.strip() or _format_answers(question, clean_answers(answer.answers))
    return await send(session, text, (), None)


async def read_left_open(session: Session) -> None:
    """Show the question again that was open when Phoenix ended: until the next message it can be answered.

    Raises:
        StorageError: the messages cannot be read.
    """
    may_be = (
        session.window.last is LastMessage.TOOL_RESULT and isinstance(session.state, Idle) and not session.read_only
    )
    if not may_be or ASK_TOOL not in session.equipment.tools:
        return
    history = await session.read_history(LAST_MESSAGES)
    newest = next((one for one in reversed(history.messages) if one.role is not Role.SYSTEM), None)
    blocks = newest.blocks if newest is not None else ()
    answered = [block.tool_use_id for block in blocks if isinstance(block, ToolResultBlock)]
    left = (
        one
        for one in history.tool_calls
        if one.tool_use_id in answered and one.name == ASK_TOOL and one.status is ToolStatus.INTERRUPTED
    )
    if (call := next(left, None)) is None:
        return
    shown = ToolCall(call.tool_use_id, call.name, call.input_json)
    try:
        ready = await prepare(session, shown)
    except ToolInputError:
        return
    session.questions.open = Question(
        shown,
        ready.request,
        "",
        "",
        session.asker,
        ready.tool.spec.tool_class,
        session.ports.clock.monotonic(),
        left_open=True,
    )


def keeps_question(session: Session) -> bool:
    """True while only the user's own answer is missing: closing then leaves the question open for the next start."""
    question = session.questions.open
    return (
        isinstance(session.state, AwaitingApproval)
        and session.record.agent is None
        and question is not None
        and bool(question.request.questions)
    )


def ends_question(before: State, after: State, question: Question | None) -> bool:
    """True when the open question is over: answered, stopped, or behind another message."""
    if isinstance(before, AwaitingApproval):
        return not isinstance(after, AwaitingApproval)
    return question is not None and after != before and not isinstance(after, Idle | Errored | AwaitingApproval)


def _format_answers(question: Question, answers: Answers) -> str:
    return format_answers(question.request.questions, answers)


class Reconsidering:
    """Looks at the open question of one conversation once its limits have come to rest."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._timer: asyncio.TimerHandle | None = None

    def soon(self) -> None:
        """Look once nothing has changed for `EngineSettings.mode_rest` seconds: Shift+Tab passes modes by."""
        self.stop()
        if self._session.questions.open is not None:
            self._timer = asyncio.get_running_loop().call_later(self._session.settings.mode_rest, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        self._session.background.start(reconsider(self._session))


async def reconsider(session: Session) -> None:
    """Let the open question go, or on with a new reason, where the limits are no longer those it was asked under."""
    state, question, asked = session.state, session.questions.open, session.questions.asked
    if not isinstance(state, AwaitingApproval) or question is None or asked is None:
        return
    if asked.call_id != question.call.id or (limits := await limits_of(session)) == asked.limits:
        return
    try:
        ready = await prepare(session, question.call)
    except ToolInputError:  # its call says so
        _post(session, limits, ApprovalLapsed(state.gen, question.call.id))
        return
    decision = decide_call(session, ExecTool(state.gen, question.call), ready, limits)
    # Differences besides the mode require another question.
    shows_other = differences(asked, ready.request, replace(limits, mode=asked.limits.mode))
    if isinstance(decision, Ask) and not shows_other:
        session.post(
            lambda: _ask_on(session, question, limits, ApprovalNeeded(state.gen, asked.call_id, decision.reason))
        )
        return
    _post(session, limits, ApprovalLapsed(state.gen, question.call.id, _note(question, decision, asked.limits, limits)))


def _ask_on(session: Session, question: Question, limits: Limits, event: ApprovalNeeded) -> ApprovalNeeded:
    """The facts of the question that stays open, unless it was answered meanwhile."""
    if session.state.gen == event.gen and session.questions.asked is not None:
        session.questions.asked = replace(session.questions.asked, limits=limits)
        session.questions.drafted = replace(question, reason=event.reason)
    return event


def _post(session: Session, limits: Limits, event: ApprovalLapsed) -> None:
    async def still_so() -> bool:
        return await limits_of(session) == limits

    session.moves.inbox.put(Priority.OUTCOME, InboxEntry(lambda: event, wanted=still_so))


def _note(question: Question, decision: Decision, before: Limits, now: Limits) -> str:
    """The row about the setting that allows it instead of the user; empty when the question is repeated, or a result
    refuses it.
    """
    changed = [f"mode {now.mode.value}"] if before.mode is not now.mode else []
    changed += [f"sandbox {now.sandbox.value}"] if before.sandbox is not now.sandbox else []
    by = " and ".join(changed)
    return f"{name_call(question)}: {ALLOWED_BY}{by}" if by and isinstance(decision, Allow) else ""


async def run_as(session: Session, question: Question, args: JsonObject) -> str:
    """Let the call run with `args` once it is allowed; returns the reason where it cannot, and changes nothing then.

    The policy decides about it once more before it runs.
    """
    call = replace(question.call, input_json=json.dumps(args))
    try:
        ready = await prepare(session, call)
    except ToolInputError as error:
        return f"The changed input of {call.name} cannot be used: {error}"
    if session.questions.asked is None or session.questions.asked.call_id != call.id:
        return "The question is no longer open."
    rewrite(session, question.call, args)
    session.questions.asked = replace(session.questions.asked, request=ready.request, limits=await limits_of(session))
    return ""
