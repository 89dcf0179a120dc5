"""Waits for a database that another program keeps busy: reported to observers, and ended by them."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, get_ident
from typing import Final

PATIENCE: Final = 600.0
"""Seconds that a change or a read waits."""
QUITTING: Final = 1.0
"""Seconds from the moment in which Phoenix ends."""
FIRM: Final = 2.0
"""Seconds after an abandoned wait in which no other begins, so that its dependent work ends, too."""
TOLD_AFTER: Final = 1.5
"""Seconds of a wait before it is reported."""


class DatabaseWaits:
    """The waits of one store. Its own threads call `go_on` and `over`; a listener is called in them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._since: dict[int, float] = {}
        self._listeners: list[Callable[[float], None]] = []
        self._told = False
        self._refuses_until = 0.0
        self._ends = 0.0
        """Monotonic time at which all waits end since Phoenix exits; 0 before that."""
        self.patience = PATIENCE

    @property
    def seconds(self) -> float:
        """Seconds of the longest wait; 0 when none is long enough to be reported."""
        with self._lock:
            return self._longest()

    def listen(self, listener: Callable[[float], None]) -> Callable[[], None]:
        """Call `listener` repeatedly with the seconds passed, then with 0; the result ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def go_on(self) -> bool:
        """True if this thread, which was refused the database, is to try again."""
        with self._lock:
            now = time.monotonic()
            since = self._since.setdefault(get_ident(), now)
            goes_on = now - since < self.patience and now >= self._refuses_until and not 0 < self._ends <= now
            seconds = self._longest()
            self._told = self._told or bool(seconds)
        if goes_on and seconds:
            self._tell(seconds)
        return goes_on

    def over(self) -> None:
        """End the wait of this thread."""
        with self._lock:
            waited = self._since.pop(get_ident(), None) is not None
            last = waited and not self._since and self._told
            self._told = self._told and not last
        if last:
            self._tell(0.0)

    def give_up(self) -> bool:
        """End every wait now; False when none was reported."""
        with self._lock:
            waits = bool(self._longest())
            if waits:
                self._refuses_until = time.monotonic() + FIRM
        return waits

    def hurry(self) -> None:
        """Phoenix ends: wait a moment longer, then for nothing."""
        with self._lock:
            self._ends = self._ends or time.monotonic() + QUITTING

    def _longest(self) -> float:
        waited = time.monotonic() - min(self._since.values(), default=time.monotonic())
        return waited if waited >= TOLD_AFTER else 0.0

    def _tell(self, seconds: float) -> None:
        for listener in tuple(self._listeners):
            listener(seconds)
