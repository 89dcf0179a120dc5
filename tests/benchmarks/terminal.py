"""A pseudo-terminal whose bytes are stamped as they are read, and a screen drawn from them afterwards.

One thread only reads, so the program never waits for us; an event's time is the time at which the chunk that made it
visible was read, however late the screen gets to it.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import pty
import queue
import re
import struct
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyte

from tests.benchmarks.rows import kill_all, tagged, tree

ROWS: Final = 40
COLUMNS: Final = 120
_QUERY: Final = re.compile(rb"\x1b\[0?c|\x1b\[6n|\x1b\[5n|\x1b\]1[01];\?(?:\x07|\x1b\\)|\x1b\[\?\d+\$p|\x1b\[>0?q")
# pyte knows neither private modes with letters nor device control strings; colours are not looked at.
_UNKNOWN: Final = re.compile(
    rb"\x1b\[[0-9;:]*m|\x1b\[[<>=][0-9;:]*[a-zA-Z]|\x1b\[\?[0-9;]*[a-gi-km-zA-Z]|\x1b\[[0-9;?]*[$ '\"][a-zA-Z]"
    rb"|\x1b[P_^X].*?(?:\x1b\\|\x07)|\x1b\].*?(?:\x1b\\|\x07)",
    re.S,
)


@dataclass(frozen=True, slots=True)
class Link:
    """Connection between the program and its terminal."""

    delay: float = 0.0
    """Seconds each way."""
    rate: float = 0.0
    """Bytes a second to the terminal; 0 without a limit."""
    piece: int = 65536
    """Bytes read at once."""


HERE: Final = Link()
"""The terminal of this machine."""
FAR_AWAY: Final = Link(0.05, 100_000, 4096)
"""100 ms there and back, as SSH over a mobile line."""


class Terminal:
    """One program in a pty of 120x40."""

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], folder: Path, tag: str, link: Link = HERE
    ) -> None:
        self.tag = tag
        self._link = link
        self._sent: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        self.bytes_written = 0
        self.ended = False
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.seen_at = 0.0
        """Monotonic time at which the last chunk on the screen was read."""
        self._stream = pyte.ByteStream(self.screen)
        self._held = b""
        self._chunks: collections.deque[tuple[float, bytes]] = collections.deque()
        self.spawned_at = time.monotonic()
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            _become(argv, environment, folder)
        self.resize(COLUMNS, ROWS)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if link.delay:
            threading.Thread(target=self._deliver, daemon=True).start()

    def write(self, text: str | bytes) -> float:
        """Send keys; gives the moment after they were sent."""
        data = text.encode() if isinstance(text, str) else text
        if self._link.delay:
            self._sent.put((time.monotonic() + self._link.delay, data))
        else:
            self._pass_on(data)
        return time.monotonic()

    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size; the screen here follows."""
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def text(self) -> str:
        """The screen as lines."""
        return "\n".join(self.screen.display)

    def wait(self, pattern: str, seconds: float = 20.0) -> float:
        """Time at which the chunk was read after which the screen shows `pattern`.

        Raises:
            TimeoutError: it did not come; the message holds the screen.
        """
        wanted, deadline = re.compile(pattern), time.monotonic() + seconds
        while not wanted.search(self.text()):
            if time.monotonic() > deadline or (self.ended and not self._chunks):
                raise TimeoutError(f"no {pattern!r} on the screen:\n{self.tail()}")
            if not self._feed():
                time.sleep(0.001)
        return self.seen_at

    def drain(self, seconds: float = 0.0) -> None:
        """Feed the screen with all that comes within `seconds`."""
        deadline = time.monotonic() + seconds
        while (fed := self._feed()) or time.monotonic() < deadline:
            if not fed:
                time.sleep(0.002)

    def wait_end(self, seconds: float = 10.0) -> None:
        """Wait until the program has closed its terminal; raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not self.ended:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the program does not end; the screen:\n{self.tail()}")
            self.drain(0.01)

    def settle(self, quiet: float = 0.3, seconds: float = 10.0) -> None:
        """Drain until nothing was written for `quiet` seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            before = self.bytes_written
            self.drain(quiet)
            if self.bytes_written == before:
                return

    def tail(self) -> str:
        """The lines of the screen that hold something."""
        return "\n".join(row.rstrip() for row in self.screen.display if row.strip())

    def close(self) -> None:
        """Kill the tree and all that carries the tag."""
        kill_all({process.pid for process in tree(self.pid)} | set(tagged(self.tag)))
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._reader.join(2)
        os.close(self.descriptor)

    def _feed(self) -> bool:
        """One chunk to the screen; False when there is none."""
        if not self._chunks or self._chunks[0][0] > time.monotonic():
            return False
        self.seen_at, chunk = self._chunks.popleft()
        whole = self._held + chunk
        cut = _cut(whole)
        self._held = whole[cut:]
        self._stream.feed(_UNKNOWN.sub(b"", whole[:cut]))
        return True

    def _pass_on(self, data: bytes) -> None:
        try:
            os.write(self.descriptor, data)
        except OSError:
            self.ended = True

    def _deliver(self) -> None:
        """Keys arrive as late as the link makes them."""
        while not self.ended:
            due, data = self._sent.get()
            time.sleep(max(0.0, due - time.monotonic()))
            self._pass_on(data)

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self.descriptor, self._link.piece)
            except OSError:
                chunk = b""
            if not chunk:
                self.ended = True
                return
            if self._link.rate:
                time.sleep(len(chunk) / self._link.rate)
            now = time.monotonic() + self._link.delay
            self.bytes_written += len(chunk)
            self._chunks.append((now, chunk))
            if b"\x1b" in chunk:
                for query in _QUERY.findall(chunk):
                    self.write(_reply(query))


def _become(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
    try:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.chdir(folder)
        os.execvpe(argv[0], list(argv), dict(environment))
    finally:
        os._exit(127)


def _cut(data: bytes) -> int:
    """Index for a cut that tears no escape sequence."""
    start = data.rfind(b"\x1b")
    if start < 0 or len(data) - start > 4096:
        return len(data)
    rest = data[start:]
    return len(data) if re.match(rb"\x1b(\[[0-9;:?<>=$ '\"]*[@-~]|[()][A-Z0-9]|[^\[\]P_^X()])", rest) else start


def _reply(query: bytes) -> bytes:
    """Reply of an xterm without kitty keys."""
    if query.endswith(b"c"):
        return b"\x1b[?62;22c"
    if query.endswith(b"6n"):
        return b"\x1b[1;1R"
    if query.endswith(b"5n"):
        return b"\x1b[0n"
    if query.startswith(b"\x1b]"):
        colour = b"ffff/ffff/ffff" if query[3:4] == b"0" else b"0000/0000/0000"
        return b"\x1b]1" + query[3:4] + b";rgb:" + colour + b"\x1b\\"
    if query.endswith(b"$p"):
        mode = query[3:-2]
        return b"\x1b[?%b;%d$y" % (mode, 2 if mode == b"2026" else 0)
    return b"\x1bP>|xterm(390)\x1b\\"
