"""Clocks that move when told."""

from __future__ import annotations


class SteppedClock:
    """A clock, wall and monotonic at once, that moves when told."""

    def __init__(self, seconds: float = 100.0) -> None:
        self.seconds = seconds

    def now(self) -> float:
        """The time as set."""
        return self.seconds

    def monotonic(self) -> float:
        """The time as set."""
        return self.seconds
