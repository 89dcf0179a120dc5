"""Ctrl+C pressed again and again without an answer: the exit of a blocked program."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Final

PRESSES: Final = 3
UNHEARD_SECONDS: Final = 2.0
"""Seconds that the first of them has waited by then."""
CTRL_C: Final = (b"\x03", b"\x1b[99;5u")
"""Ctrl+C as a terminal sends it, without and with kitty's keys."""


class Impatience:
    """Ends Phoenix by SIGTERM when the loop takes none of three presses; lives on the thread that reads the keys."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._unheard = 0
        self._since = 0.0

    def note(self, received: bytes) -> None:
        """Look for Ctrl+C in the input."""
        presses = sum(received.count(key) for key in CTRL_C)
        if not presses:
            return
        if not self._unheard:
            self._since = time.monotonic()
        self._unheard += presses
        self._loop.call_soon_threadsafe(self._heard)
        if self._unheard >= PRESSES and time.monotonic() - self._since >= UNHEARD_SECONDS:
            os.kill(os.getpid(), signal.SIGTERM)

    def _heard(self) -> None:
        self._unheard = 0
