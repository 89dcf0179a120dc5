"""Programs in a real pseudo-terminal, and a screen that shows what they wrote."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte
from ptyprocess import PtyProcess

from tests.support.ptys import end
from tests.support.waiting import PATIENCE, poll_blocking

ROOT = Path(__file__).parents[2]


class Terminal:
    """One program in a pty; collects every byte it writes."""

    def __init__(
        self, argv: list[str], *, rows: int = 24, columns: int = 80, env: dict[str, str] | None = None
    ) -> None:
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        self.process = PtyProcess.spawn(argv, cwd=str(ROOT), env=environment, dimensions=(rows, columns), echo=True)
        self.before = termios.tcgetattr(self.process.fd)
        self.written = b""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)

    def pump(self, seconds: float = 0.01) -> bool:
        """Read what is there; False once the other end is closed."""
        if not select.select([self.process.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.process.fd, 65536)
        except OSError:
            return False
        self.written += data
        # pyte knows neither kitty keys nor mode queries.
        self._stream.feed(re.sub(rb"\x1b\[[<>][0-9;]*u|\x1b\[\?[0-9]+\$p", b"", data))
        return bool(data)

    def until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Pump until `condition` holds; False when it does not in time."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            if not self.pump():
                return poll_blocking(condition, deadline - time.monotonic())
        return True

    def type(self, data: bytes) -> None:
        """Send bytes as a keyboard would."""
        self.process.write(data)

    def ended(self) -> bool:
        """True once the program has ended."""
        return not self.process.isalive()

    def close(self) -> None:
        """End the program, whatever it does."""
        end(self.process)


def python_program(module: str, *arguments: str) -> list[str]:
    """The command of a module of this checkout."""
    return [sys.executable, "-m", module, *arguments]
