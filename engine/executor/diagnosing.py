"""Model calls as records for debugging, written in a thread once a call has ended (SPEC UNI-19)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from engine.executor.pacing import THROTTLED
from engine.executor.session import Session
from engine.ports import ModelReply, ModelRequest, ProviderError
from engine.records.model_calls import CallPurpose


def note_reply(
    session: Session,
    request: ModelRequest,
    reply: ModelReply,
    duration_ms: int,
    purpose: CallPurpose = CallPurpose.REPLY,
) -> None:
    """Keep a reply."""
    diagnostics = session.settings.diagnostics
    if diagnostics is not None:
        session.background(asyncio.to_thread(diagnostics.replied, request, reply, duration_ms, purpose))


def note_failure(
    session: Session, request: ModelRequest, error: ProviderError, purpose: CallPurpose = CallPurpose.REPLY
) -> None:
    """Keep a failed request, unless it was refused for its rate."""
    diagnostics = session.settings.diagnostics
    if diagnostics is not None and error.kind not in THROTTLED:
        session.background(asyncio.to_thread(diagnostics.failed, request, error, purpose))


@contextmanager
def noted(session: Session, request: ModelRequest, purpose: CallPurpose) -> Generator[Callable[[ModelReply], None]]:
    """Keep the failure of a call inside the block, or the reply that is handed to the result."""
    clock = session.ports.clock
    started = clock.monotonic()

    def replied(reply: ModelReply) -> None:
        note_reply(session, request, reply, int((clock.monotonic() - started) * 1000), purpose)

    try:
        yield replied
    except ProviderError as error:
        note_failure(session, request, error, purpose)
        raise
