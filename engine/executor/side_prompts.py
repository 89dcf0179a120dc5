"""A small question to a model beside a conversation: without tools, in the background, counted in its totals."""

from __future__ import annotations

import asyncio
from typing import Final

from engine.executor.asking import ModelAnswer, answer_to
from engine.executor.session import Session
from engine.records.model_calls import CallPurpose

PATIENCE: Final = 30.0
"""Seconds after which an answer is no longer waited for."""
MAX_TOKENS: Final = 1_024
"""Room for a model that thinks before it writes a line."""


def may_ask(session: Session, model: str) -> bool:
    """True when `model` has time for it: not throttled, not local, which is slow enough, no rules, and memory not
    short.

    Raises:
        ProviderError: there is no such model.
    """
    provider, name = session.ports.providers.resolve(model)
    tight = session.governor.is_tight(f"{provider.name}/{name}", session.ports.clock.monotonic())
    return not (session.settings.memory_gauge.refusal() or provider.describe(name).local or tight)


async def ask(session: Session, purpose: CallPurpose, model: str, instruction: str, text: str) -> ModelAnswer:
    """Answer of `model` to `text`.

    Raises:
        ProviderError: it cannot be asked, or its answer breaks off.
        TimeoutError: it takes too long.
    """
    async with asyncio.timeout(PATIENCE):
        return await answer_to(session, purpose, model, instruction, text, MAX_TOKENS)
