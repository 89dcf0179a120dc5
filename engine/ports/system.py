"""Time and identifiers."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall and monotonic time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class Ids(Protocol):
    """Fresh identifiers."""

    def new(self) -> str:
        """A UUID4 as text."""
        ...
