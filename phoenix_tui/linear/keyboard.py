"""Stdin: keys of a terminal without echo, or the lines of a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import termios
from codecs import getincrementaldecoder
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, Protocol

from phoenix_tui.terminal.state import Attributes

READ: Final = 65_536
LONE_ESC: Final = 0.05
"""Seconds after which an ESC byte alone is the Esc key."""
PASTE_BEGINS: Final = "\x1b[200~"
PASTE_ENDS: Final = "\x1b[201~"
LONGEST_SEQUENCE: Final = 32


class KeyboardListener(Protocol):
    """Receiver of typed input."""

    def take_input(self, text: str) -> None:
        """Take a whole piece of input."""
        ...

    def end_input(self) -> None:
        """Take the end of the input."""
        ...


class Keyboard:
    """Gives whole pieces of input: a sequence or a paste is never cut."""

    def __init__(self, listener: KeyboardListener) -> None:
        self.is_terminal = os.isatty(0)
        self._listener = listener
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._pending = ""
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def listening(self) -> Generator[None]:
        """Read stdin; the terminal is as it was afterwards."""
        loop = asyncio.get_running_loop()
        before = _single_keys() if self.is_terminal else None
        regular = stat.S_ISREG(os.fstat(0).st_mode)
        if regular:
            loop.call_soon(self._read_file)
        else:
            loop.add_reader(0, self._read)
        try:
            yield
        finally:
            if not regular:
                loop.remove_reader(0)
            if before is not None:
                with contextlib.suppress(termios.error):  # not TCSADRAIN: a terminal stopped with Ctrl+S never drains
                    termios.tcsetattr(0, termios.TCSANOW, before)

    def resume(self) -> None:
        """Take single keys again after a stop (Ctrl+Z)."""
        if self.is_terminal:
            _single_keys()

    def _read_file(self) -> None:
        while self._received(os.read(0, READ)):
            pass

    def _read(self) -> None:
        try:
            received = os.read(0, READ)
        except OSError:
            received = b""
        if not self._received(received):
            asyncio.get_running_loop().remove_reader(0)

    def _received(self, received: bytes) -> bool:
        """Pass on complete input; False at the end of the input."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not received:
            self._listener.end_input()
            return False
        text = self._pending + self._decode(received)
        self._pending = unfinished(text) if self.is_terminal else ""
        whole = text[: len(text) - len(self._pending)]
        if whole:
            self._listener.take_input(whole)
        if self._pending and not self._pending.startswith(PASTE_BEGINS):
            self._timer = asyncio.get_running_loop().call_later(LONE_ESC, self._give_up_waiting)
        return True

    def _give_up_waiting(self) -> None:
        """Handle an incomplete sequence as the Esc key."""
        pending, self._pending = self._pending, ""
        self._listener.take_input(pending[:1])
        if pending[1:]:
            self._listener.take_input(pending[1:])


def _single_keys() -> Attributes:
    """Switch echo off and read key by key; Ctrl+C and Ctrl+Z stay signals. Returns the attributes to restore."""
    before: Attributes = termios.tcgetattr(0)
    now = termios.tcgetattr(0)
    now[0] &= ~(termios.ICRNL | termios.IXON)
    now[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
    termios.tcsetattr(0, termios.TCSANOW, now)
    return before


def unfinished(text: str) -> str:
    """The end of `text` that may be the beginning of a sequence or a paste."""
    paste = text.rfind(PASTE_BEGINS)
    if paste >= 0 and PASTE_ENDS not in text[paste:]:
        return text[paste:]
    start = text.rfind("\x1b")
    rest = text[start:] if start >= 0 else ""
    if not rest or len(rest) > LONGEST_SEQUENCE:
        return ""
    begins = rest == "\x1b" or (rest[1] in "[O" and not rest[2:].rstrip("0123456789;:?<>="))
    return rest if begins else ""
