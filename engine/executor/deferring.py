"""Calls that a hook puts off: a program without a user ends with the call, and decides about it later."""

from __future__ import annotations

from typing import Final

from engine.executor.call_hooks import CallOpinion
from engine.executor.session import Session
from engine.machine.states import ToolExecuting
from engine.permissions.policy import Decision, Deny
from engine.ports.hooks import HookPermission

CODE: Final = "tool_deferred"
"""Error code of a run that ended so."""
ENDED: Final = "A hook put off the call of {name}{why}"
RESULT: Final = (
    "{name} has not run: a hook put this call off{why}. The run ends here. When the user goes on, make the same call "
    "again."
)


def is_deferred(session: Session, opinion: CallOpinion | None) -> bool:
    """True where hooks put a call off: in a program without a screen, and where its reply has no other call."""
    state = session.state
    if opinion is None or not session.settings.may_defer or session.record.agent is not None:
        return False
    verdict = opinion.verdict
    is_alone = isinstance(state, ToolExecuting) and not state.round.queue and not state.round.results
    return is_alone and verdict.permission is HookPermission.DEFER and not verdict.blocks and not verdict.stops


def deferred(name: str, opinion: CallOpinion) -> tuple[Decision, str]:
    """The refusal of a call that is put off, and the sentence for the user."""
    reason = opinion.verdict.reason.strip().rstrip(".")
    why = f": {reason}" if reason else ""
    return Deny(RESULT.format(name=name, why=why)), ENDED.format(name=name, why=why)
