"""Work that a message waits for before it is sent; the user can stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from engine.executor.requests import Refused
from engine.executor.session import Session

Result = TypeVar("Result")

STOPPED: Final = "Stopped before it was sent."


async def until_stopped(session: Session, work: Coroutine[Any, Any, Result]) -> Result | Refused:
    """The result of the work, or a refusal where the user stopped it; an error of the work is raised.

    A caller that is cancelled itself cancels the work and waits for its end.
    """
    running: asyncio.Future[Result] = asyncio.ensure_future(work)
    session.expanding = running
    try:
        await asyncio.wait((running,))
        return running.result()
    except asyncio.CancelledError:
        if running.done():
            return Refused(STOPPED)
        running.cancel()
        await asyncio.wait((running,))
        raise
    finally:
        session.expanding = None


def stop_expanding(session: Session) -> None:
    """Stop the work that a message waits for; the message is not sent."""
    if session.expanding is not None:
        session.expanding.cancel()
