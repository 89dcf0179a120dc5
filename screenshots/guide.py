"""Guide of the tour (`tour.py`): the program at one size, keys, and the return to the composer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from screenshots.studio import Studio
from tests.support.cli import Phoenix
from tests.support.program import CTRL_Q, ESC, Program

CTRL_F, CTRL_L, CTRL_O, CTRL_P, CTRL_R, CTRL_U = b"\x06", b"\x0c", b"\x0f", b"\x10", b"\x12", b"\x15"
F1, F2, UP, DOWN, RIGHT, LEFT, TAB = b"\x1bOP", b"\x1bOQ", b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\t"
CTRL_E: Final = b"\x05"
PAGE_UP, CTRL_END, ALT_UP, ALT_W = b"\x1b[5~", b"\x1b[1;5F", b"\x1b[1;3A", b"\x1bw"
TYPED: Final = 0.7
"""Seconds after which a question takes a letter."""
OPEN: Final = ("Esc closes", "Esc returns", "Esc unmarks", "Esc shows all", "Esc discards", "Esc cancels", "? keys")
"""Hints while Esc would close something."""
PATIENCE: Final = 8
"""Largest number of nested open sheets."""


class Tour:
    """One program at one size, and the pictures of it."""

    def __init__(self, place: Studio, phoenix: Phoenix, running: Program, size: str) -> None:
        self.place = place
        self.phoenix = phoenix
        self.running = running
        self.size = size

    async def press(self, *keys: bytes | str) -> None:
        """One key after another, each seen by the program before the next."""
        for key in keys:
            self.running.type(key)
            await asyncio.sleep(0.12)

    async def take(self, name: str, *wanted: str) -> None:
        """A picture, once these words are there."""
        await self.running.shows(*wanted)
        await self.place.take(f"{name}-{self.size}", self.running)

    async def gone(self, *words: str) -> None:
        """Press Esc once for each of these words, and see them go."""
        for one in words:
            self.running.type(ESC)
            await self.running.lacks(one)

    async def home(self) -> None:
        """Close whatever is open and empty the composer; an Esc too many would go back in the conversation."""
        for _ in range(PATIENCE):
            if not self._open():
                break
            await self._escape(self._open())
        await self.press(CTRL_E, CTRL_U)

    async def _escape(self, before: list[str]) -> None:
        self.running.type(ESC)
        with suppress(AssertionError):  # the next Esc may close it
            await self.running.until(lambda: self._open() != before, seconds=5)
        await asyncio.sleep(0.4)

    def _open(self) -> list[str]:
        return [words for words in OPEN if words in self.running.words]

    async def leave(self) -> None:
        """Quit, so that the next size begins with no crash to recover from."""
        await self.home()
        await self.press(CTRL_Q)
        await self.running.exit_code()


Stop: TypeAlias = Callable[[Tour], Awaitable[None]]
"""A part of the tour."""
