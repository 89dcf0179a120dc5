"""Delays a call of a model visibly until its rate limits have room for it, and reports its usage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from engine.context.estimate import message_tokens, rough_tokens, tools_tokens
from engine.executor.rate_window import PacedCall
from engine.executor.session import Session
from engine.machine.messages import Usage
from engine.ports import LimitsTold, ModelRequest, Provider, ProviderError
from engine.ports.growing_values import GrowingValues
from engine.updates import Paced

LEAST_TOLD: Final = 1.0
"""Seconds of a wait before a call from which it is reported."""
LOOK_AGAIN: Final = 1.0
"""Seconds after which a wait is computed again: other calls end, or are stopped."""
THROTTLED: Final = frozenset({"rate_limit", "overloaded"})


class Pacing:
    """One call passing through the governor."""

    def __init__(self, session: Session, call: PacedCall) -> None:
        self._session = session
        self._call = call

    def told(self, limits: LimitsTold) -> None:
        """The head of the answer is there."""
        session = self._session
        session.governor.told(self._call.model, limits.limits, session.ports.clock.monotonic())

    def answered(self, usage: Usage) -> None:
        """The answer is whole."""
        session = self._session
        session.governor.succeeded(self._call.model)
        session.governor.answered(self._call, usage, session.ports.clock.monotonic())


@asynccontextmanager
async def paced(
    session: Session,
    provider: Provider,
    request: ModelRequest,
    *,
    cached: int = 0,
    is_retry: bool = False,
    shown: bool = True,
    known: GrowingValues[int] | None = None,
) -> AsyncGenerator[Pacing]:
    """Enter once a call may begin; cancelling ends the wait. A `ProviderError` raised inside counts as its end.

    `cached` tokens of its input may be in the provider's cache. `shown` is True where the run under way waits for it.
    `known` has the tokens of the messages of the request before.
    """
    governor, clock, model = session.governor, session.ports.clock, f"{provider.name}/{request.model}"
    governor.configured(model, provider.describe(request.model).limits)
    call = governor.enter(model, request_tokens(request, known), cached, clock.monotonic(), is_retry=is_retry)
    refused = False
    try:
        await _wait(session, call, shown=shown)
        governor.begin(call, clock.monotonic())
        yield Pacing(session, call)
    except ProviderError as error:
        refused = error.kind in THROTTLED
        governor.told(model, error.limits, clock.monotonic(), by_refusal=True)
        if refused:
            governor.throttled(model, error.retry_after, clock.monotonic())
        raise
    finally:
        governor.leave(call, clock.monotonic(), refused=refused)


async def _wait(session: Session, call: PacedCall, *, shown: bool) -> None:
    clock, publish, told_until = session.ports.clock, session.publisher.publish, 0.0
    while (seconds := session.governor.wait(call, now := clock.monotonic())) > 0:
        if shown and seconds >= LEAST_TOLD and abs(now + seconds - told_until) >= LEAST_TOLD:
            told_until = now + seconds
            publish(Paced(seconds))
        await asyncio.sleep(min(seconds, LOOK_AGAIN))
    if told_until > clock.monotonic():
        publish(Paced(0.0))


def request_tokens(request: ModelRequest, known: GrowingValues[int] | None = None) -> int:
    """Input tokens of a request, guessed from its size."""
    said = sum((known or GrowingValues(message_tokens)).of(request.messages))
    return said + sum(map(rough_tokens, request.system)) + tools_tokens(request.tools)
