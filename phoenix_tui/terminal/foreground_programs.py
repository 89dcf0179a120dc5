"""Programs that use the terminal in place of Phoenix, such as $EDITOR: they end with it, also while its loop is
blocked.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final, Protocol

from msgspec import Struct


class Guest(Struct):
    """One that has the terminal."""

    hung_up: bool = False
    """True when Phoenix ended it."""


_guests: Final[dict[int, Guest]] = {}
"""Foreground programs by process id."""


@contextmanager
def has_terminal(pid: int) -> Generator[Guest]:
    """Register a program while it runs."""
    _guests[pid] = guest = Guest()
    try:
        yield guest
    finally:
        del _guests[pid]


def hang_up() -> None:
    """Send all of them the signal of a closed terminal; from any thread."""
    for pid, guest in tuple(_guests.items()):
        guest.hung_up = True
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGHUP)


class Borrower(Protocol):
    """The use of the terminal by a shell line, whose bytes Phoenix copies."""

    def pause(self) -> None:
        """Give the terminal to the shell: Phoenix is about to be stopped."""
        ...

    def go_on(self) -> None: ...

    async def end(self) -> None: ...


_borrowers: Final[list[Borrower]] = []


def borrow(borrower: Borrower | None) -> None:
    """Register the shell line that has the terminal; None: Phoenix has it again."""
    _borrowers[:] = [borrower] if borrower is not None else []


def borrower() -> Borrower | None:
    return _borrowers[0] if _borrowers else None
