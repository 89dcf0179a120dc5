"""Collects cyclic garbage soon after something large has ended, once for many ends."""

from __future__ import annotations

import asyncio
import gc
from typing import Final

DUE_AT: Final = 1_500
"""kB that have ended until they are collected: ten conversations, or ten sheets. A collection takes 11 ms."""
AFTERWARDS: Final = 0.5
"""Seconds between the last end and the collection: not while it is being closed."""


class Garbage:
    """Counts finished objects. Reference cycles go with a collection of all objects, else hours later.

    Until then they keep their memory, new objects are allocated around it, and it cannot return to the system: 141 kB
    of every sub-agent stayed without this, 55 kB do with it.
    """

    def __init__(self) -> None:
        self._kilobytes = 0

    def ended(self, kilobytes: int) -> None:
        """Count a finished object by its size; called on the thread of the event loop."""
        self._kilobytes += kilobytes
        if self._kilobytes >= DUE_AT:
            self._kilobytes = 0
            asyncio.get_running_loop().call_later(AFTERWARDS, gc.collect)


garbage: Final = Garbage()
"""The one of this process."""
