"""Removal of conversations archived or trashed longer ago than `retention_days`, in the background (SPEC UNI-31)."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from engine.ports import OwnedElsewhere, StorageError

if TYPE_CHECKING:
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
        for conversation_id in await library.expired(before):
            try:
                removed += await library.remove_expired(conversation_id, before)
            except OwnedElsewhere:
                continue
            await asyncio.sleep(REST)
    except StorageError as error:
        log.warning("expired conversations left for the next start: %s", error)
    if removed:
        log.info("permanently deleted %d conversations archived or deleted more than %g days ago", removed, days)
