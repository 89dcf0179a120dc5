"""Removal of old conversations and events, in slices in the background (SPEC UNI-31, SDK-04)."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import TYPE_CHECKING, Final

from engine.ports import OwnedElsewhere, StorageError

if TYPE_CHECKING:
    from engine.store.events import EventLog
    from engine.store.library import Library


log = logging.getLogger(__name__)

FIRST: Final = 5.0
"""Seconds after the start, which belongs to the user."""
REST: Final = 0.2
"""Seconds between two conversations."""
DAY: Final = 86_400.0


def cutoff(days: float, now: float) -> float | None:
    """The time before which removed conversations are deleted; None where everything is kept."""
    return now - days * DAY if days > 0 else None


async def remove_expired(library: Library, days: float) -> None:
    """Delete one conversation after the other; those of other processes, or open here, stay."""
    before = cutoff(days, time.time())
    if before is None:
        return
    await asyncio.sleep(FIRST)
    removed = 0
    try:
        for conversation_id in await library.list_expired(before):
            try:
                removed += await library.remove_expired(conversation_id, before)
            except OwnedElsewhere:
                continue
            await asyncio.sleep(REST)
    except StorageError as error:
        log.warning("expired conversations left for the next start: %s", error)
    if removed:
        log.info("permanently deleted %d conversations archived or deleted more than %g days ago", removed, days)


FIRST_EVENTS: Final = 8.0
"""Seconds after the start, which belongs to the user."""
SLICE: Final = 500
"""Events of one transaction: about 10 ms."""
PAUSE: Final = 0.05
"""Seconds between two slices, in which runs are stored."""
AGAIN: Final = 6 * 3_600.0
"""Seconds between two removals in a Phoenix that stays open."""


async def remove_old_events(events: EventLog, days: float, first: float = FIRST_EVENTS) -> None:
    """Remove what is too old now, and again later, until cancelled; keeps all for 0 days."""
    if days <= 0:
        return
    await asyncio.sleep(first)
    while True:
        await remove_now(events, days)
        await asyncio.sleep(AGAIN)


async def remove_now(events: EventLog, days: float, *, most: int = sys.maxsize) -> int:
    """Remove what is too old, `most` slices of it; returns how many events went.

    A failing store is left for the next time.
    """
    before, removed = cutoff(days, time.time()), 0
    try:
        while before is not None and most > 0 and (gone := await events.remove_older(before, SLICE)):
            removed, most = removed + gone, most - 1
            await asyncio.sleep(PAUSE)
    except StorageError as error:
        log.warning("old events left for the next time: %s", error)
    if removed:
        log.info("removed %d events older than %g days", removed, days)
    return removed
