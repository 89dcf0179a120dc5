"""Interface of the stored event stream: pages behind a number, a snapshot, and a wait for more (SPEC SDK-22)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final, Protocol

from engine.records.events import EventSnapshot, StoredEvent

PAGE: Final = 200
"""Events of one read."""
LOOK_EVERY: Final = 0.1
"""Seconds between two looks for newer events."""


class EventLog(Protocol):
    """The events of all conversations, of this process and others. Every method may raise StorageError."""

    async def after(self, seq: int, conversation_id: str = "", limit: int = PAGE) -> Sequence[StoredEvent]:
        """At most `limit` events behind `seq`, in order; of one conversation, or of all where it is empty."""
        ...

    async def snapshot(self, conversation_id: str = "") -> EventSnapshot:
        """The newest number, with the state of the conversation, or of all at work, as of that event."""
        ...

    async def version(self) -> int:
        """A number that changes with each commit, of this process or another."""
        ...

    async def remove_older(self, before: float, limit: int) -> int:
        """Remove the oldest events from before a time, at most `limit`; returns how many went."""
        ...


async def follow(
    log: EventLog,
    seq: int,
    conversation_id: str = "",
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[StoredEvent]:
    """Every event behind `seq`, in order and without end; a reader that stops resumes by the last number it has seen.

    At most one page is in memory, however far behind the reader is.
    """
    seen: int | None = None
    while True:
        version = await log.version()  # ahead of the read, so that what comes meanwhile is looked for again
        if version != seen:
            seen = version
            page = await log.after(seq, conversation_id)
            while page:
                for event in page:
                    seq = event.seq
                    yield event
                page = await log.after(seq, conversation_id)
        await sleep(LOOK_EVERY)
