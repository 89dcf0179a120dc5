"""The clock and the ids of the real world."""

from __future__ import annotations

import time
import uuid


class SystemClock:
    """Time of this machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


class RandomIds:
    """UUID4 for every id."""

    def new(self) -> str:
        """A UUID4 as text."""
        return str(uuid.uuid4())
