"""The key with which the user takes the terminal back from a program: Ctrl+] twice in a row."""

from __future__ import annotations

import re
from typing import Final

from tools.clock import SYSTEM_CLOCK, Clock

TWICE_WITHIN: Final = 0.5
"""Seconds."""
NAME: Final = "Ctrl+] twice"
_PRESS: Final = rb"(?:\x1d|\x1b\[93;5u|\x1b\[27;5;93~)"
"""Ctrl+] as terminals send it, without and with the keys of kitty and of xterm's modifyOtherKeys."""
_TWICE: Final = re.compile(_PRESS + _PRESS)
_LAST: Final = re.compile(_PRESS + rb"\Z")


class ReturnKey:
    """Finds it in what the user types. The first press is held: programs have a use for Ctrl+], such as vim."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._held = b""
        self._held_at = 0.0

    def feed(self, keys: bytes) -> tuple[bytes, bool]:
        """Keys for the program, and True where the user wants the terminal back; later keys are dropped then."""
        before, now = self._take_held(), self._clock.monotonic()
        if now - self._held_at < TWICE_WITHIN:
            before, keys = b"", before + keys
        if (twice := _TWICE.search(keys)) is not None:
            return before + keys[: twice.start()], True
        if (last := _LAST.search(keys)) is not None:
            self._held, self._held_at, keys = last[0], now, keys[: last.start()]
        return before + keys, False

    @property
    def holds(self) -> bool:
        """True while a press waits for a second one."""
        return bool(self._held)

    def take_late(self) -> bytes:
        """A press that no second one followed in time, for the program."""
        return self._take_held() if self._clock.monotonic() - self._held_at >= TWICE_WITHIN else b""

    def _take_held(self) -> bytes:
        held, self._held = self._held, b""
        return held
