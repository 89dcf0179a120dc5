"""Clocks that tests move."""

from __future__ import annotations


class SteppedClock:
    """A clock, wall and monotonic at once, that tests move."""

    def __init__(self, seconds: float = 100.0) -> None:
        self.seconds = seconds

    def now(self) -> float:
        """The time as set."""
        return self.seconds

    def monotonic(self) -> float:
        """The time as set."""
        return self.seconds
