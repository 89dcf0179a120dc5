"""Requests that were made and not answered yet: a message being stored, a command about to start."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager


class InFlight:
    """Counts messages being sent: a conversation that looks empty may be about to get one, and Esc stops it."""

    def __init__(self) -> None:
        self._all: list[asyncio.Event] = []

    @property
    def waiting(self) -> bool:
        """True while there are any."""
        return bool(self._all)

    @contextmanager
    def one(self) -> Generator[asyncio.Event]:
        """Around one of them; the event is set once the user has stopped it."""
        stopped = asyncio.Event()
        self._all.append(stopped)
        try:
            yield stopped
        finally:
            self._all.remove(stopped)

    def stop(self) -> bool:
        """Stop their effects; False when there are none."""
        for stopped in self._all:
            stopped.set()
        return self.waiting
