"""One question to a model, without tools: its whole answer, and what that cost."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from msgspec import Struct

from engine.executor.session import Session
from engine.machine.messages import Role, TextBlock, Usage, text_in
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError


class Said(Struct, frozen=True):
    """What a model answered."""

    text: str
    usage: Usage
    cost_usd: float | None
    """None where its price is unknown."""
    model: str = ""
    """As its provider names it."""


async def answer_to(session: Session, model: str, instruction: str, text: str, max_tokens: int) -> Said:
    """What `model` answers to `text`; for its time the caller cares.

    Raises:
        ProviderError: it cannot be asked, or its answer breaks off.
    """
    provider, name = session.ports.providers.resolve(model)
    question = ModelMessage(Role.USER, (TextBlock(text),))
    request = ModelRequest(name, (instruction,), (question,), max_tokens=max_tokens)
    async with aclosing(provider.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, ModelReply):
                cost = await asyncio.to_thread(session.ports.providers.price, model, item.usage)
                return Said(text_in(item.blocks), item.usage, cost, item.model)
    raise broke_off(retryable=False)


def broke_off(*, retryable: bool) -> ProviderError:
    """A stream that ended without a reply."""
    return ProviderError("the answer ended too early", kind="network", retryable=retryable)
