"""Decides the open question again when mode or sandbox changed: a question they now answer is withdrawn."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from engine.executor.approving import limits_of, named
from engine.executor.inbox import InboxEntry, Priority
from engine.executor.ready_calls import decide_call, prepare
from engine.executor.session import Session
from engine.machine.effects import ExecTool
from engine.machine.events import ApprovalLapsed, ApprovalNeeded
from engine.machine.states import AwaitingApproval
from engine.permissions.asked import AskedCall, differences
from engine.permissions.policy import Allow, Ask, Decision, Limits
from engine.updates import Question
from tools.contract import ToolInputError, ToolRequest


class Reconsidering:
    """Looks at the open question of one conversation once its limits have come to rest."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._timer: asyncio.TimerHandle | None = None

    def soon(self) -> None:
        """Look once nothing has changed for `EngineSettings.mode_rest` seconds: Shift+Tab passes modes by."""
        self.stop()
        if self._session.question is not None:
            self._timer = asyncio.get_running_loop().call_later(self._session.settings.mode_rest, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        self._session.background(reconsider(self._session))


async def reconsider(session: Session) -> None:
    """Let the open question go, or on with a new reason, where the limits are no longer those it was asked under."""
    state, question, asked = session.state, session.question, session.asked
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
    if isinstance(decision, Ask) and not _shows_other(asked, ready.request, limits):
        session.post(
            lambda: _ask_on(session, question, limits, ApprovalNeeded(state.gen, asked.call_id, decision.reason))
        )
        return
    _post(session, limits, ApprovalLapsed(state.gen, question.call.id, _note(question, decision, asked.limits, limits)))


def _shows_other(asked: AskedCall, request: ToolRequest, limits: Limits) -> str:
    """Differences from the question besides the mode: they require another question."""
    return differences(asked, request, replace(limits, mode=asked.limits.mode))


def _ask_on(session: Session, question: Question, limits: Limits, event: ApprovalNeeded) -> ApprovalNeeded:
    """The facts of the question that stays open, unless it was answered meanwhile."""
    if session.state.gen == event.gen and session.asked is not None:
        session.asked = replace(session.asked, limits=limits)
        session.drafted_question = replace(question, reason=event.reason)
    return event


def _post(session: Session, limits: Limits, event: ApprovalLapsed) -> None:
    async def still_so() -> bool:
        return await limits_of(session) == limits

    session.inbox.put(Priority.OUTCOME, InboxEntry(lambda: event, wanted=still_so))


def _note(question: Question, decision: Decision, before: Limits, now: Limits) -> str:
    """The row about the setting that allows it instead of the user; empty when the question is repeated, or a result
    refuses it.
    """
    changed = [f"mode {now.mode.value}"] if before.mode is not now.mode else []
    changed += [f"sandbox {now.sandbox.value}"] if before.sandbox is not now.sandbox else []
    by = " and ".join(changed)
    return f"{named(question)}: allowed by {by}" if by and isinstance(decision, Allow) else ""
