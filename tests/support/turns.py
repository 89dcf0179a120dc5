"""Waiting for a condition without burning a core: a look after each turn of the loop that did something."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.support.waiting import LOOK


class Turns:
    """Wakes those who wait after each turn of a loop, and every `LOOK` seconds while nothing happens."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        """Loop of asyncio over a selector, whose inside has no public name."""
        self._waiting: list[asyncio.Future[None]] = []
        self._worked = False
        """True when callbacks beside the looks ran in the turn before."""
        self._select = self._loop._selector.select
        self._loop._selector.select = self._wait

    async def next(self) -> None:
        """Wait for the end of this turn, or of the pause behind it."""
        turned = self._loop.create_future()
        self._waiting.append(turned)
        await turned

    def _wait(self, timeout: float | None = None) -> object:
        """Stand for `select` of the loop's selector, with which a turn begins."""
        if not self._waiting:
            return self._select(timeout)
        pause = LOOK if timeout is None or timeout > LOOK else timeout
        found = self._select(0 if self._worked else pause)
        self._worked = bool(found or self._loop._ready or pause < LOOK)
        waiting, self._waiting = self._waiting, []
        for turned in waiting:
            if not turned.done():
                turned.set_result(None)
        return found


def turns() -> Turns:
    """The turns of the running loop."""
    loop: Any = asyncio.get_running_loop()
    known = getattr(loop._selector.select, "__self__", None)
    return known if isinstance(known, Turns) else Turns(loop)
