"""The real program in a pseudo-terminal, its screen as text."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ptyprocess
import pyte

from tests.support.cli import Phoenix
from tests.support.forks import is_forkable, start_in_pty
from tests.support.program import fresh_attributes
from tests.support.ptys import end
from tests.support.waiting import PATIENCE

DEADLINE = PATIENCE
"""Seconds a test waits for something on the screen."""
COLUMNS, ROWS = 110, 30


@dataclass(slots=True)
class Terminal:
    """A terminal with Phoenix in it."""

    process: Any
    before: list[Any]
    screen: pyte.Screen = field(default_factory=lambda: pyte.Screen(COLUMNS, ROWS))
    raw: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        """Text of the screen."""
        return "\n".join(self.screen.display)

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self.process.fd, keys)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Read until `holds` or the program has gone."""
        stream = pyte.ByteStream(self.screen)
        loop = asyncio.get_running_loop()
        end = loop.time() + DEADLINE
        while not holds():
            assert loop.time() < end, self.text
            await readable(self.process.fd, 0.1)
            data = self._read()
            self.raw += data
            stream.feed(data)

    async def shows(self, text: str) -> None:
        """Wait until `text` is on the screen."""
        await self.until(lambda: text in self.text)

    async def exit_code(self) -> int | None:
        """Exit code; None after a signal."""
        await self.until(lambda: not self.process.isalive())
        self.raw += self._read()
        code: int | None = self.process.exitstatus
        return code

    def modes(self) -> list[Any]:
        """The terminal's attributes now."""
        return termios.tcgetattr(self.process.fd)

    def close(self) -> None:
        """End it, whatever it does."""
        end(self.process)

    def _read(self) -> bytes:
        try:
            return os.read(self.process.fd, 1 << 16) if ready(self.process.fd) else b""
        except OSError:
            return b""


def ready(descriptor: int) -> bool:
    """True when a read would not wait."""
    return bool(select.select([descriptor], [], [], 0)[0])


async def readable(descriptor: int, seconds: float) -> None:
    """Wait until something can be read, at most so long."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(descriptor, event.set)
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
    finally:
        loop.remove_reader(descriptor)


def open_screen(phoenix: Phoenix, *arguments: str, program: str = "") -> Terminal:
    """Start the program with a screen; `program` is Python code to run instead."""
    command = [sys.executable, *(["-c", program] if program else ["-m", "phoenix_tui"]), *arguments]
    environment = {**phoenix.environment, "TERM": "xterm-256color"}
    if not program and not phoenix.anew and is_forkable(environment, arguments):
        fork = start_in_pty(("phoenix_tui", *arguments), phoenix.cwd, environment, (ROWS, COLUMNS), None)
        return Terminal(fork, fresh_attributes())  # it may have changed its own by now
    process = ptyprocess.PtyProcess.spawn(command, cwd=str(phoenix.cwd), env=environment, dimensions=(ROWS, COLUMNS))
    return Terminal(process, termios.tcgetattr(process.fd))
