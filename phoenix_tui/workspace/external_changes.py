"""Changes of other processes to the conversations: after their writes, the list is read again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from engine.ports import StorageError

LOOK_EVERY: Final = 1.0
"""Seconds between two looks; one costs 0.1 ms."""
REST_SHARE: Final = 50
"""Factor of the rest after reading a long list again, so that it takes 2 % of a core at most."""
AGAIN: Final = 30.0
"""Seconds until the next look where the database does not answer."""


async def follow(
    changed: Callable[[], Awaitable[bool]],
    reload: Callable[[], Awaitable[None]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Look again and again, until cancelled."""
    while True:
        rest = LOOK_EVERY
        try:
            if await changed():
                began = clock()
                await reload()
                rest = max(rest, (clock() - began) * REST_SHARE)
        except StorageError:
            rest = AGAIN
        await sleep(rest)
