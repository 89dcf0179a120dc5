"""Tells hooks that a conversation has waited for its user for a while: one timer, and only where a hook wants it."""

from __future__ import annotations

import asyncio
from typing import Final

from engine.executor.hooking import wants_hooks
from engine.executor.prompt_hooks import notify
from engine.executor.session import Session
from engine.machine.states import Errored, Idle
from engine.ports.hooks import HookEvent

AFTER: Final = 60.0
"""Seconds behind the end of a run; those of the program that such hooks were written for."""
KIND: Final = "idle_prompt"
WAITS: Final = "Phoenix is waiting for your input"


def run_is_over(session: Session) -> None:
    """Begin to wait for the user; a sub-agent has none."""
    nothing_waits(session)
    if session.record.agent is None and wants_hooks(session, HookEvent.NOTIFICATION):
        session.hooks.idle = asyncio.get_running_loop().call_later(AFTER, _tell, session)


def nothing_waits(session: Session) -> None:
    """Stop waiting: the user is here, or the conversation closes."""
    if session.hooks.idle is not None:
        session.hooks.idle.cancel()
        session.hooks.idle = None


def _tell(session: Session) -> None:
    session.hooks.idle = None
    if isinstance(session.state, Idle | Errored) and not session.read_only:
        notify(session, KIND, WAITS)
