"""The user's terminal, given back after Phoenix died without doing so itself (FAULTS 3.4)."""

from __future__ import annotations

import contextlib
import os
import termios

RESET = (
    b"\x1b[<u"  # kitty keys: popped before the alternate screen is left, which has its own stack
    b"\x1b[?2026l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    b"\x1b[?1004l\x1b[?2004l\x1b[?2031l\x1b[?2048l"
    b"\x1b[?1l\x1b>\x1b(B\x0f\x1b7\x1b[r\x1b8"  # keys, letters, scrolled rows: Phoenix had lent it to a program
    b"\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0 q\x1b[0m\r"
)


def describe(terminal: int) -> str:
    """The terminal's settings as text for an argument; empty when it has none."""
    try:
        *numbers, characters = termios.tcgetattr(terminal)
    except termios.error:
        return ""
    codes = [code if isinstance(code, int) else code[0] for code in characters]
    return ",".join(str(number) for number in (*numbers, *codes))


def restore(terminal: int, described: str) -> None:
    """Put the settings of `describe` back and write the reset string."""
    numbers = [int(number) for number in described.split(",")]
    settings: list[int | list[bytes | int]] = [*numbers[:6], [bytes([code]) for code in numbers[6:]]]
    with contextlib.suppress(OSError, termios.error):  # hung up, or revoked
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
    with contextlib.suppress(OSError):  # or stopped with Ctrl+S
        os.set_blocking(terminal, False)
        os.write(terminal, RESET)


def say(terminal: int, words: bytes) -> None:
    """Write a line where the terminal takes it; `restore` came before."""
    with contextlib.suppress(OSError):
        os.write(terminal, words)
