"""A small question to a model beside a conversation: without tools, in the background, counted in its totals."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.executor.session import Session
from engine.executor.spending import add_usage
from engine.machine.messages import Role, TextBlock, Usage, text_in
from engine.ports import ConversationChanges, ModelMessage, ModelReply, ModelRequest, ProviderError

PATIENCE: Final = 30.0
"""Seconds after which an answer is no longer waited for."""
MAX_TOKENS: Final = 1_024
"""Room for a model that thinks before it writes a line."""
DEMO: Final = "demo"
"""The guide answers by rules: it cannot say anything about a conversation."""


class Aside(Struct, frozen=True):
    """What a model said, and what that cost."""

    text: str
    usage: Usage
    cost_usd: float | None
    """None where its price is unknown."""


def may_ask(session: Session, model: str) -> bool:
    """Whether `model` has time for it: it is not throttled, and no model of this machine, which is slow enough.

    Raises:
        ProviderError: there is no such model.
    """
    provider, name = session.ports.providers.resolve(model)
    return not (provider.name == DEMO or provider.describe(name).local or session.governor.delay(model))


async def ask(session: Session, model: str, instruction: str, text: str) -> Aside:
    """What `model` answers to `text`.

    Raises:
        ProviderError: it cannot be asked, or its answer breaks off.
        TimeoutError: it takes too long.
    """
    provider, name = session.ports.providers.resolve(model)
    question = ModelMessage(Role.USER, (TextBlock(text),))
    request = ModelRequest(name, (instruction,), (question,), max_tokens=MAX_TOKENS)
    async with asyncio.timeout(PATIENCE), aclosing(provider.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, ModelReply):
                price = await asyncio.to_thread(session.ports.providers.price, model, item.usage)
                said = text_in(item.blocks, "\n")
                return Aside(said, item.usage, price)
    raise ProviderError("the answer ended too early", kind="network", retryable=False)


async def keep(conversation: Conversation, session: Session, aside: Aside, changes: ConversationChanges) -> None:
    """Store `changes` with what the answer cost, between two moves, so that neither undoes what the other counted."""
    async with conversation.between_moves:
        totals = add_usage(session.record.totals, aside.usage, aside.cost_usd)
        await conversation.change(replace(changes, totals=totals))
    session.tell_context()
