"""One question to a model, without tools: its whole answer, and its cost."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.call_log import UNPRICED, OpenCall
from engine.executor.diagnosing import noted
from engine.executor.pacing import Pacing, paced
from engine.executor.session import Session
from engine.executor.spending import check_caps, count
from engine.machine.effects import RequestLlm
from engine.machine.messages import Role, TextBlock, Usage, text_in
from engine.machine.states import run_of
from engine.ports import (
    ConversationChanges,
    LimitsTold,
    ModelMessage,
    ModelReply,
    ModelRequest,
    Provider,
    ProviderError,
    ProviderNotice,
    StorageError,
    UsageTold,
)
from engine.records.model_calls import PREVIEW, CallPurpose, CallStatus

OF_TOOLS: Final = frozenset({CallPurpose.WEB_SEARCH, CallPurpose.WEB_PAGE, CallPurpose.SAMPLING})
"""Purposes of a tool's calls: part of its run, and ended with the tool."""
OF_RUNS: Final = OF_TOOLS | {CallPurpose.REPLY, CallPurpose.ROUTING, CallPurpose.COMPACTION, CallPurpose.MEMORY}
"""Purposes of calls that belong to a run; all others run beside runs."""


class ModelAnswer(Struct, frozen=True):
    """Answer of a model."""

    text: str
    usage: Usage
    cost_usd: float | None
    """Cost of the answer; None where its price is unknown."""
    model: str = ""
    """Name as its provider gives it."""


class Changing(Protocol):
    """A conversation whose record is changed between two moves."""

    between_moves: asyncio.Lock

    async def change(self, changes: ConversationChanges) -> None:
        """Store them."""
        ...


async def answer_to(
    session: Session, purpose: CallPurpose, model: str, instruction: str, text: str, max_tokens: int
) -> ModelAnswer:
    """Ask `model` and return its answer; the caller limits the time.

    Raises:
        ProviderError: it cannot be asked, its answer breaks off, or a cap on spending forbids it.
        StorageError: what was spent cannot be read.
    """
    _, name = session.ports.providers.resolve(model)
    question = ModelMessage(Role.USER, (TextBlock(text),))
    reply, cost = await ask_aside(
        session, purpose, model, ModelRequest(name, (instruction,), (question,), max_tokens=max_tokens)
    )
    return ModelAnswer(text_in(reply.blocks), reply.usage, cost, reply.model)


async def ask_aside(
    session: Session, purpose: CallPurpose, model: str, request: ModelRequest
) -> tuple[ModelReply, float | None]:
    """Ask `model` beside the messages: within the caps on spending, paced, recorded and noted for debugging.

    Returns the reply and its cost, None where the price is unknown.

    Raises:
        ProviderError: it cannot be asked, its answer breaks off, or a cap on spending forbids it.
        StorageError: what was spent cannot be read.
    """
    await check_caps(session)
    provider, _ = session.ports.providers.resolve(model)
    with noted(session, request, purpose) as diagnosed:
        async with paced(session, provider, request, shown=purpose in OF_RUNS) as pacing:
            with recorded(session, purpose, model, request) as call:
                reply = await reply_of(provider, request, call, pacing)
                cost = await cost_of(session, model, reply)
                replied(session, call, reply, cost)
            pacing.answered(reply.usage)
        diagnosed(reply)
    return reply, cost


async def cost_of(session: Session, model: str, reply: ModelReply) -> float | None:
    """US dollars of a reply: what its service charged by its own statement, else by the price list."""
    if reply.cost_usd is not None:
        return reply.cost_usd
    return await asyncio.to_thread(session.ports.providers.price, model, reply.usage)


async def reply_of(provider: Provider, request: ModelRequest, call: OpenCall, pacing: Pacing) -> ModelReply:
    """The whole reply to a request.

    Raises:
        ProviderError: it cannot be asked, or its answer breaks off.
    """
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            call.streamed = call.streamed or not isinstance(item, LimitsTold | ProviderNotice)
            match item:
                case UsageTold(usage, cost_usd):
                    call.usage, call.cost_usd = usage, cost_usd
                case LimitsTold():
                    pacing.told(item)
                case ModelReply():
                    call.usage = item.usage
                    return item
                case _:
                    pass  # the reply has all of it
    raise broke_off(retryable=False)


@contextmanager
def recorded(
    session: Session, purpose: CallPurpose, model: str, request: ModelRequest, ask: RequestLlm | None = None
) -> Generator[OpenCall]:
    """Record a call made inside the block: an exception marks it as failed or stopped."""
    clock, run = session.ports.clock, run_of(session.state) if purpose in OF_RUNS else None
    call = OpenCall(
        id=session.ports.ids.new(),
        purpose=purpose,
        reference=model,
        started_at=clock.now(),
        begun=clock.monotonic(),
        run_id=ask.run_id if ask is not None else run.id if run is not None else "",
        iteration=ask.iteration if ask is not None else 0,
        attempt=ask.attempt if ask is not None else 0,
        request=request if session.settings.trace_verbose else None,
    )
    session.calls.begin(call)
    try:
        yield call
    except ProviderError as error:
        kind = error.kind
        session.calls.end(call, CallStatus.FAILED, clock.monotonic(), lambda one: replace(one, error=kind))
        raise
    except Exception:
        session.calls.end(call, CallStatus.FAILED, clock.monotonic(), lambda one: replace(one, error="internal"))
        raise
    except BaseException:
        session.calls.end(call, CallStatus.CANCELLED, clock.monotonic())
        raise


def replied(
    session: Session, call: OpenCall, reply: ModelReply, cost_usd: float | None = UNPRICED, message_id: str = ""
) -> None:
    """A call ended well."""
    session.calls.end(
        call,
        CallStatus.OK,
        session.ports.clock.monotonic(),
        lambda one: replace(
            one,
            usage=reply.usage,
            model=reply.model or one.model,
            estimated=reply.usage_estimated,
            cost_usd=reply.cost_usd if cost_usd == UNPRICED and reply.cost_usd is not None else cost_usd,
            message_id=message_id,
            preview=text_in(reply.blocks)[:PREVIEW],
            stop=reply.stop.value,
        ),
    )


async def keep(conversation: Changing, session: Session, changes: ConversationChanges) -> None:
    """Store `changes` with the ended calls, between two moves, so that neither undoes the sums of the other.

    Raises:
        StorageError: it cannot be stored; the calls wait for the next time.
    """
    async with conversation.between_moves:
        calls = await session.calls.take(session.ports.providers.price)
        try:
            await conversation.change(replace(changes, calls=calls))
        except StorageError:
            session.calls.give_back(calls)
            raise
        count(session, calls)


def broke_off(*, retryable: bool) -> ProviderError:
    """A stream that ended without a reply."""
    return ProviderError("the answer ended too early", kind="network", retryable=retryable)
