"""Indexing of older messages while the app runs, half of the time at most."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from engine.ports import StorageError

if TYPE_CHECKING:
    from engine.store.library import Library


FIRST: Final = 2.0
"""Seconds after the start, which belongs to the user."""
REST: Final = 0.05
"""Seconds between two slices at least."""
AGAIN: Final = 30.0
"""Seconds until a refused slice is tried again: another process keeps the file busy, or the disk is full."""


async def index_older(library: Library) -> None:
    """Index slice after slice until nothing is left; a failed write is retried later.

    First, conversations that a killed process left half copied or half removed are deleted.
    """
    rest, cleared = FIRST, False
    while True:
        await asyncio.sleep(rest)
        began = time.monotonic()
        try:
            if not cleared:
                await library.clear_partial()
                cleared = True
            progress = await library.index_older()
        except StorageError:
            rest = AGAIN
            continue
        if progress.done >= progress.total:
            return
        rest = max(time.monotonic() - began, REST)
