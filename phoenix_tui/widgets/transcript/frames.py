"""Times of drawing: at once after a rest, then 16 a second, fewer if frames are slow (docs/decisions/textual.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from tools.clock import SYSTEM_CLOCK, Clock

FRAME_SECONDS: Final = 1 / 16
COST_FACTOR: Final = 8
"""Frames may take about an eighth of the time, whatever a model writes."""
SLOWEST_SECONDS: Final = 0.4
"""Longest wait of a frame, however much the last one had to lay out."""


class Frames:
    """Calls `draw` soon after each request, never for every one of them."""

    def __init__(self, draw: Callable[[], None], clock: Clock = SYSTEM_CLOCK) -> None:
        self._draw = draw
        self._clock = clock
        self._ended = float("-inf")
        self._cost = 0.0
        self._handle: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> bool:
        """True while a frame is still to come."""
        return self._handle is not None

    def request(self, not_before: float = 0.0) -> None:
        """Schedule a frame, in `not_before` seconds at the earliest."""
        if self._handle is not None:
            return
        rest = min(max(FRAME_SECONDS, COST_FACTOR * self._cost), SLOWEST_SECONDS)
        wait = max(self._ended + rest - self._clock.monotonic(), not_before)
        if wait <= 0:
            self.flush()
        else:
            self._handle = asyncio.get_running_loop().call_later(wait, self.flush)

    def flush(self) -> None:
        """Draw now."""
        self.stop()
        began = self._clock.monotonic()
        self._draw()
        self._ended = self._clock.monotonic()
        self._cost = self._ended - began

    def catch_up(self) -> None:
        """Draw a pending frame now: another paint happens at this moment anyway."""
        if self.waiting:
            self.flush()

    def stop(self) -> None:
        """Forget a frame that is still to come."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
