"""Output of a program for the user's own terminal while that is lent to it: bounded, in the order it came."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

from tools.terminal.values import TerminalSize

MOST_WAITING: Final = 256 * 1024
"""Bytes that wait for the user's terminal; what a program writes beyond them waits in its own."""
AT_ONCE: Final = 64 * 1024
"""Bytes of one read, and a chunk more."""


class LoanOwner(Protocol):
    """The program's own terminal."""

    @property
    def wants_screen(self) -> bool:
        """True while the program uses the alternate screen."""
        ...

    @property
    def sequences(self) -> bytes:
        """Sequences that put a terminal into the modes that the program has set."""
        ...

    def go_on(self) -> None:
        """Read on after a pause."""
        ...

    def type(self, keys: bytes) -> None:
        """Type into the program."""
        ...

    def set_size(self, size: TerminalSize) -> None:
        """Set its size."""
        ...

    def take_back(self) -> None:
        """End the loan."""
        ...


class TerminalLoan:
    """Implements `tools.job_board.LentTerminal`."""

    def __init__(self, owner: LoanOwner, begins: bytes) -> None:
        self._owner = owner
        self._waiting = deque[bytes]([begins] if begins else [])
        self._size = len(begins)
        self._arrived = asyncio.Event()
        self._ended = False

    @property
    def is_full(self) -> bool:
        """True when nothing more is to be read from the program."""
        return self._size >= MOST_WAITING

    @property
    def is_drawing(self) -> bool:
        """True while the program uses the alternate screen."""
        return self._owner.wants_screen

    async def read(self) -> bytes:
        """The next output; empty once the program has ended, or the terminal was given back."""
        while not self._waiting and not self._ended:
            self._arrived.clear()
            await self._arrived.wait()
        taken: list[bytes] = []
        while self._waiting and sum(map(len, taken)) < AT_ONCE:
            taken.append(self._waiting.popleft())
        content = b"".join(taken)
        self._size -= len(content)
        if content:
            self._owner.go_on()
        return content

    def type(self, keys: bytes) -> None:
        """Type into the program."""
        self._owner.type(keys)

    def resize(self, size: TerminalSize) -> None:
        """Set the size of the user's terminal; the program receives SIGWINCH."""
        self._owner.set_size(size)

    def draw_again(self, size: TerminalSize) -> None:
        """Let the program draw all on a terminal that shows nothing of it; it receives SIGWINCH."""
        self.put(self._owner.sequences)
        self._owner.set_size(TerminalSize(size.rows, max(size.columns - 1, 1)))
        self._owner.set_size(size)

    def give_back(self) -> None:
        """Give the terminal back; the program runs on."""
        if not self._ended:
            self.end()
            self._owner.take_back()

    def put(self, content: bytes) -> None:
        """Take output of the program."""
        if content and not self._ended:
            self._waiting.append(content)
            self._size += len(content)
            self._arrived.set()

    def end(self) -> None:
        """End it: no more output is taken, and waiting output can still be read."""
        self._ended = True
        self._arrived.set()
