"""Waiting for descriptors in the event loop, ended for good when their owner closes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Readiness:
    """Waits for the descriptors of one owner; at most one wait each for reading and for writing at a time."""

    def __init__(self) -> None:
        self._waits: dict[asyncio.Future[None], Callable[[], object]] = {}
        """Waits, and what removes each from the event loop."""
        self.closed = False

    async def readable(self, descriptor: int) -> None:
        """Wait until a read would not block, or until `close`."""
        loop = asyncio.get_running_loop()
        if not self.closed:
            wait = loop.create_future()
            loop.add_reader(descriptor, _resolve, wait)
            await self._wait(wait, lambda: loop.remove_reader(descriptor))

    async def writable(self, descriptor: int) -> None:
        """Wait until a write would not block, or until `close`."""
        loop = asyncio.get_running_loop()
        if not self.closed:
            wait = loop.create_future()
            loop.add_writer(descriptor, _resolve, wait)
            await self._wait(wait, lambda: loop.remove_writer(descriptor))

    def close(self) -> None:
        """Let every wait return and leave the event loop, so that the descriptors can be closed."""
        self.closed = True
        waits, self._waits = self._waits, {}
        for wait, remove in waits.items():
            remove()
            _resolve(wait)

    async def _wait(self, wait: asyncio.Future[None], remove: Callable[[], object]) -> None:
        self._waits[wait] = remove
        try:
            await wait
        finally:
            if self._waits.pop(wait, None) is not None:  # else closed: the number may belong to another by now
                remove()


def _resolve(wait: asyncio.Future[None]) -> None:
    if not wait.done():
        wait.set_result(None)
