"""The exact size of a window, counted by its provider without a reply."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from engine.context.assemble import Assembly, assemble
from engine.context.growing import GrowingView
from engine.executor.session import Session
from engine.executor.window import prompt_facts
from engine.machine.effects import RequestLlm
from engine.machine.states import is_busy
from engine.ports import ConversationChanges, ProviderError, TokenCounter
from engine.records import ConversationRecord

PATIENCE: Final = 5.0
"""Seconds that a provider has to count."""
FIRST_CALL: Final = RequestLlm(0, "", 1, 1_000)
"""The call whose request is counted."""


async def count_window(session: Session, between_moves: asyncio.Lock) -> bool:
    """Ask the provider to count the window where only an estimate is known; True when it did.

    Does nothing during a run, whose next reply brings the count.
    """
    record = session.record
    known = record.context_tokens and not record.context_estimated
    if known or not record.message_count or session.read_only or is_busy(session.state):
        return False
    tokens: int | None = None
    with suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(PATIENCE):
            tokens = await _counted(session, record)
    return tokens is not None and await _stored(session, between_moves, record, tokens)


async def _counted(session: Session, record: ConversationRecord) -> int | None:
    provider, name = session.ports.providers.resolve(record.model)
    if not isinstance(provider, TokenCounter):
        return None
    store = session.ports.store
    rows = await store.messages(record.id, first_seq=max(1, record.context_start_seq))
    assembly = Assembly(prompt_facts(session), name, session.ports.clock.now(), record.view, effort=record.effort)
    return await provider.count_tokens(await assemble(store, rows, GrowingView(), FIRST_CALL, assembly))


async def _stored(session: Session, between_moves: asyncio.Lock, counted: ConversationRecord, tokens: int) -> bool:
    """Store the count unless the window has changed meanwhile."""
    async with between_moves:
        now = session.record
        same = (now.view, now.message_count, now.model) == (counted.view, counted.message_count, counted.model)
        if not same or is_busy(session.state):
            return False
        changes = ConversationChanges(context_tokens=tokens, context_counted=True)
        await session.ports.store.change(now.id, changes, session.ports.clock.now())
        session.record = replace(session.record, context_tokens=tokens, context_estimated=False)
    session.tell_context()
    return True
