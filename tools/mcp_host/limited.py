"""The time limits of a request: in all, and without a byte or progress. Open questions to the user stop both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tools.mcp_host.causes import Failed
from tools.mcp_host.limits import PROGRESS_APART
from tools.mcp_host.protocol import Progress

T = TypeVar("T")
WATCHED_EVERY = 0.25
"""Seconds between two looks at an open question."""
_abandoned: set[asyncio.Task[Any]] = set()
"""Requests whose reply is sent already and that tell their server about the cancel; the set keeps them alive."""


async def limited(
    work: Coroutine[Any, Any, T], *, total: float, idle: float, heard: Callable[[], float], asked: Callable[[], bool]
) -> T:
    """The result of `work`; `heard` is the loop's time of the last sign of life, `asked` True while a person is asked.

    Raises:
        Failed: a limit passed.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    begun = quiet = loop.time()
    try:
        while not task.done():
            now = loop.time()
            if asked():
                await asyncio.wait({task}, timeout=WATCHED_EVERY)
                begun += loop.time() - now
                quiet = loop.time()
                continue
            rest, silence = total - (now - begun), idle - (now - max(quiet, heard()))
            if rest <= 0:
                raise Failed("timeout", f"It took longer than {total:g} s.")
            if silence <= 0:
                raise Failed("idle", f"Neither data nor progress came for {idle:g} s.")
            await asyncio.wait({task}, timeout=min(rest, silence, 1.0))
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            _abandoned.add(task)
            task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # read once, so that the loop does not report it


class ProgressMeter:
    """Progress of one request: at most ten events a second, and the last one of several."""

    def __init__(self, number: int, send: Callable[[Progress], None]) -> None:
        self._number, self._send = number, send
        self._loop = asyncio.get_running_loop()
        self._sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._newest: Progress | None = None
        self.last = self._loop.time()

    def note(self, done: float, total: float | None, text: str) -> None:
        """Note progress of the server."""
        self.last = self._loop.time()
        self._newest = Progress(id=self._number, done=done, total=total, text=text)
        wait = self._sent + PROGRESS_APART - self.last
        if wait <= 0:
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(wait, self._flush)

    def close(self) -> None:
        """Send nothing more."""
        self._newest = None
        if self._timer is not None:
            self._timer.cancel()

    def _flush(self) -> None:
        self._timer = None
        if self._newest is not None:
            self._sent = self._loop.time()
            self._send(self._newest)
            self._newest = None
