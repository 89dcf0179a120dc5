"""Pauses of a stream's reader that leave time to the keyboard and the processor."""

from __future__ import annotations

from time import monotonic

from tools.clock import SYSTEM_CLOCK, Clock

BURST_SECONDS = 0.001
"""Time a burst may hold the loop: reading does not suspend while bytes are waiting (docs/decisions/textual.md)."""
WAITED_SECONDS = 0.0005
"""A read that took longer had to wait for the network."""
STEADY_READS = 8
"""Waits after which the stream is one of slow tokens, not a short answer."""
MERGE_SECONDS = 0.0625
"""Pause after each such wait: one frame of the screen, which draws 16 times a second. Waking up costs more than
reading: four streams of 80 tokens a second, one of them in view, take 9 % of a core with it and 11 % with 0.04 s."""


class Burst:
    """Times the reading of bytes that are there already, such as a reply that came in one piece."""

    def __init__(self) -> None:
        self._begun = monotonic()

    def is_over(self) -> bool:
        """True each time `BURST_SECONDS` have passed: the loop should run once."""
        now = monotonic()
        if now - self._begun <= BURST_SECONDS:
            return False
        self._begun = now
        return True


class ReadPace:
    """Times the reads of one stream."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._left = self._burst = clock.monotonic()
        self._waits = 0
        self._waited = False

    def arrived(self) -> None:
        """A piece has been read."""
        now = self._clock.monotonic()
        self._waited = now - self._left > WAITED_SECONDS
        if self._waited:
            self._burst = now
            self._waits += 1

    def rest(self) -> float | None:
        """Seconds to sleep before the next read, 0 to let the loop run once, None to read on."""
        now = self._left = self._clock.monotonic()
        if self._waited and self._waits > STEADY_READS:
            return MERGE_SECONDS
        if now - self._burst > BURST_SECONDS:
            self._burst = now
            return 0.0
        return None

    def rested(self) -> None:
        """The sleep is over; it counts neither as waiting for the network nor as holding the loop."""
        self._left = self._burst = self._clock.monotonic()
