"""Waiting in tests: the only place that may sleep: between two looks, or for a person's pause."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 45.0
"""Seconds a test waits for something that is sure to come; a busy machine needs more than a quick one."""
LOOK: Final = 0.005
"""Seconds between two looks."""
TYPING_GUARD: Final = 0.6
"""Seconds without typing after which a letter answers a question (0.5, docs/decisions/answering-keys.md), and a bit."""


async def poll(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Look until `condition` holds; False when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(LOOK)
    return True


def poll_blocking(condition: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Wait like `poll`, for plain tests and threads."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(LOOK)
    return True


async def pause_between_looks() -> None:
    """Pause for work of a thread without a completion signal."""
    await asyncio.sleep(LOOK)


async def typing_guard() -> None:
    """Let the guard against answers by accident run out; it goes by the clock of another process."""
    await asyncio.sleep(TYPING_GUARD)


async def keys_at(type_: Callable[[str], object], text: str, pace: float) -> None:
    """Type a text with `pace` seconds between two keys; 0: all of it in one write."""
    if not pace:
        type_(text)
        return
    for letter in text:
        type_(letter)
        await asyncio.sleep(pace)


async def rest(seen: Callable[[], object], still: float = 0.8) -> None:
    """Wait until a value has been the same for this long; for states without an event to wait for."""
    last, since, end = seen(), time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() - since < still:
        assert time.monotonic() < end, "it does not come to rest"
        await asyncio.sleep(LOOK * 4)
        if (now := seen()) != last:
            last, since = now, time.monotonic()
