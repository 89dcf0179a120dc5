"""One question to a model, without tools: its whole answer, and what that cost."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.executor.session import Session
from engine.executor.spending import add_usage
from engine.machine.messages import Role, TextBlock, Usage, text_in
from engine.ports import ConversationChanges, ModelMessage, ModelReply, ModelRequest, ProviderError


class Said(Struct, frozen=True):
    """What a model answered."""

    text: str
    usage: Usage
    cost_usd: float | None
    """None where its price is unknown."""
    model: str = ""
    """As its provider names it."""


class Changing(Protocol):
    """A conversation whose record is changed between two moves."""

    between_moves: asyncio.Lock

    async def change(self, changes: ConversationChanges) -> None:
        """Store them."""
        ...


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


async def keep(conversation: Changing, session: Session, said: Said, changes: ConversationChanges) -> None:
    """Store `changes` with what the answer cost, between two moves, so that neither undoes what the other counted."""
    async with conversation.between_moves:
        totals = add_usage(session.record.totals, said.usage, said.cost_usd)
        await conversation.change(replace(changes, totals=totals))
    session.tell_context()


def broke_off(*, retryable: bool) -> ProviderError:
    """A stream that ended without a reply."""
    return ProviderError("the answer ended too early", kind="network", retryable=retryable)
