"""A database that another program keeps busy, in words; waits are reported in the thread of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

WAITING: Final = "Waiting for the database, which another program is using."


def on_this_loop(tell: Callable[[float], object]) -> Callable[[float], None]:
    """Wrap a listener of `DatabaseWaits`, which is called in another thread, for a callee in this loop."""
    loop = asyncio.get_running_loop()

    def told(seconds: float) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, seconds)

    return told


def say_once(tell: Callable[[str], object], words: str) -> Callable[[float], None]:
    """A listener that says `words` as a wait begins to be long, once a wait."""
    waiting = False

    def told(seconds: float) -> None:
        nonlocal waiting
        if seconds and not waiting:
            tell(words)
        waiting = bool(seconds)

    return told
