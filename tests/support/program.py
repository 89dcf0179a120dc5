"""The real program in a real pty: keys in, screen and raw bytes out, always being read."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import sys
import termios
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import ptyprocess
import pyte

from tests.support.cli import Phoenix
from tests.support.forks import is_forkable, start_in_pty
from tests.support.ptys import end
from tests.support.waiting import PATIENCE

DEADLINE = PATIENCE
LAST_WORDS = 2.0
"""Seconds in which what a program wrote before its end comes through the pty."""
SOONEST, SELDOM = 0.01, 0.1
"""Seconds between two looks at something that is not on the screen."""
READ, SLOW_READ = 1 << 16, 1 << 10
MOST_DRAWN = 5_000
"""Columns and rows of the screen that is looked at; a terminal may say that it has more, or none."""
UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>=][0-9;]*[a-z]|\x1b\[\?[0-9;]*\$p|\x1b\[\?u")
"""Kitty keys and mode queries: pyte would print them."""
UNFINISHED = re.compile(rb"\x1b(?:\[[0-9;:<>=?$]*)?\Z")
ESC, ENTER, TAB, CTRL_C, CTRL_D, CTRL_N, CTRL_Q = b"\x1b", b"\r", b"\t", b"\x03", b"\x04", b"\x0e", b"\x11"
LEFT, RIGHT, UP, DOWN = b"\x1b[D", b"\x1b[C", b"\x1b[A", b"\x1b[B"


class Program:
    """One Phoenix in a pty."""

    def __init__(self, process: Any, columns: int, rows: int) -> None:
        self.process = process
        self.before = fresh_attributes()
        self.screen = pyte.Screen(columns, rows)
        self.raw = bytearray()
        self.expects_faults = False
        """True where a fault of Phoenix's own is planted; any other that was contained fails the test."""
        self.draws = True
        """True when the output is drawn on `screen`; a huge screen would take seconds."""
        self._stream = pyte.ByteStream(self.screen)
        self._held = b""
        self._text: str | None = None
        """Text of the screen as it is drawn; None where it has to be read anew: every wait looks at it."""
        self._words: str | None = None
        self._changed = asyncio.Event()
        self._over = asyncio.Event()
        """Set once all that was ever written has been read."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(process.fd, self._drain)

    @property
    def pid(self) -> int:
        """The program's own process."""
        pid: int = self.process.pid
        return pid

    @property
    def text(self) -> str:
        """Text of the screen, row by row."""
        if self._text is None:
            # Not `display`: during a frame half of a wide character may be alone, which it cannot take.
            screen = self.screen
            rows = (screen.buffer[row] for row in range(screen.lines))
            cells = ("".join(row[place].data for place in range(screen.columns)).rstrip() for row in rows)
            self._text = "\n".join(cells)
        return self._text

    @property
    def words(self) -> str:
        """The screen with every run of blanks and line ends as one blank."""
        if self._words is None:
            self._words = " ".join(self.text.split())
        return self._words

    def row(self, containing: str) -> str:
        """The first row that holds this text; empty when none does."""
        return next((row for row in self.text.split("\n") if containing in row), "")

    def type(self, keys: bytes | str) -> None:
        """Type, as a keyboard would."""
        os.write(self.process.fd, keys.encode() if isinstance(keys, str) else keys)

    async def press(self, keys: bytes | str, *texts: str) -> None:
        """Type, and wait until all of these texts are on the screen."""
        self.type(keys)
        await self.shows(*texts)

    def paste(self, text: str) -> None:
        """Paste, as a terminal with bracketed paste would."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        """Another size, with its SIGWINCH; from then on it is drawn."""
        self.draws, self._text, self._words = True, None, None
        self.screen.resize(rows, columns)
        self.process.setwinsize(rows, columns)

    def slow_down(self) -> None:
        """Read as over a line of 50 KB a second from now on."""
        self._loop.remove_reader(self.process.fd)
        self._loop.call_later(0.02, self._read_slowly)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program alone."""
        os.kill(self.pid, number)

    async def until(self, holds: Callable[[], bool], why: str = "", seconds: float = DEADLINE) -> None:
        """Wait until `holds`; looks again at every byte from the program, and ever more seldom without one."""
        end, pause = self._loop.time() + seconds, SOONEST
        while not holds():
            assert self._loop.time() < end, f"{why or 'the wait'} did not come true:\n{self.text}"
            self._changed.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
                pause = SOONEST
            except TimeoutError:
                pause = min(pause * 1.5, SELDOM)

    async def shows(self, *texts: str, seconds: float = DEADLINE) -> None:
        """Wait until all of these are on the screen, however the lines are broken."""
        wanted = [" ".join(text.split()) for text in texts]
        await self.until(lambda: all(text in self.words for text in wanted), f"{texts} on the screen", seconds)

    async def lacks(self, text: str, seconds: float = DEADLINE) -> None:
        """Wait until this is not on the screen."""
        await self.until(lambda: text not in self.words, f"{text!r} gone from the screen", seconds)

    async def ready(self) -> None:
        """Wait until it takes keys and all services are open."""
        await self.shows("? help")

    async def send(self, text: str, *texts: str) -> None:
        """Type a message, see it in the composer, press Enter, and wait until all of these texts are on the screen."""
        await self.press(text, text)
        await self.press(ENTER, *texts)

    async def exit_code(self, seconds: float = DEADLINE) -> int:
        """Wait for its end; minus the signal's number when a signal ended it."""
        await self.until(lambda: not self.process.isalive(), "the end of the program", seconds)
        with suppress(TimeoutError):  # another process may still hold the terminal open
            async with asyncio.timeout(LAST_WORDS):
                await self._over.wait()
        code: int | None = self.process.exitstatus
        return -self.process.signalstatus if code is None else code

    @property
    def terminal_is_back(self) -> bool:
        """True when the terminal's attributes are the original ones."""
        now: list[Any] = termios.tcgetattr(self.process.fd)
        return now == self.before

    def close(self) -> None:
        """End it, whatever it does."""
        if not self.process.closed:
            self._loop.remove_reader(self.process.fd)
        end(self.process)

    def hang_up(self) -> None:
        """Take the terminal away, as a window that is closed does."""
        self._loop.remove_reader(self.process.fd)
        self.process.fileobj.close()
        self.process.fd, self.process.closed = -1, True

    def _read_slowly(self) -> None:
        if self.process.closed or self._over.is_set():
            return
        if select.select([self.process.fd], [], [], 0)[0]:
            self._drain(SLOW_READ)
        self._loop.call_later(0.02, self._read_slowly)

    def _drain(self, most: int = READ) -> None:
        try:
            data = os.read(self.process.fd, most)
        except (OSError, ValueError):
            data = b""
        if not data:
            self._loop.remove_reader(self.process.fd)
            self._over.set()
            self._changed.set()
            return
        self.raw += data
        self._text = self._words = None
        self._changed.set()
        if not self.draws:
            return
        data = self._held + data
        cut = UNFINISHED.search(data)
        self._held = data[cut.start() :] if cut else b""
        self._stream.feed(UNKNOWN_TO_PYTE.sub(b"", data[: cut.start()] if cut else data))


@asynccontextmanager
async def program(
    phoenix: Phoenix,
    *arguments: str,
    columns: int = 100,
    rows: int = 30,
    errors: Path | None = None,
    module: str = "phoenix_tui",
) -> AsyncGenerator[Program]:
    """Phoenix in a terminal of this size, its stderr there too or in a file; ended with the block.

    `module` is what runs in its place: one of `tests.support` that changes something in it first.
    """
    environment = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **phoenix.environment}
    words = (module, *arguments)
    if not phoenix.anew and is_forkable(environment, words):
        process = start_in_pty(words, phoenix.cwd, environment, (rows, columns), errors)
    else:
        command = [sys.executable, "-m", *words]
        if errors is not None:
            command = ["sh", "-c", 'exec "$@" 2>"$0"', str(errors), *command]
        process = ptyprocess.PtyProcess.spawn(
            command, cwd=str(phoenix.cwd), env=environment, dimensions=(rows, columns)
        )
    running = Program(process, min(columns, MOST_DRAWN) or 80, min(rows, MOST_DRAWN) or 24)
    running.draws = max(columns, rows) <= MOST_DRAWN
    try:
        yield running
    finally:
        running.close()
    if not running.expects_faults:
        assert [report.read_text() for report in (phoenix.home / "logs").glob("crash-*.txt")] == []


@asynccontextmanager
async def on_screen(phoenix: Phoenix, *arguments: str, **terminal: Any) -> AsyncGenerator[Program]:
    """Phoenix in a terminal as `program` makes it, once it takes keys and all services are open."""
    async with program(phoenix, *arguments, **terminal) as running:
        await running.ready()
        yield running


@asynccontextmanager
async def in_lines(phoenix: Phoenix, *arguments: str, columns: int = 100) -> AsyncGenerator[Program]:
    """Phoenix in lines that waits for a message, in a terminal from which nothing scrolls away during a test."""
    async with program(phoenix, "--screen-reader", *arguments, rows=200, columns=columns) as running:
        await running.shows("You:")
        yield running


def fresh_attributes() -> list[Any]:
    """Attributes of a new terminal: a program that has begun may have changed its own already."""
    ends = os.openpty()
    try:
        return termios.tcgetattr(ends[1])
    finally:
        for end_ in ends:
            os.close(end_)


def mark() -> str:
    """A unique number of seconds for sleep, to find in the arguments of a process."""
    return f"300.{uuid.uuid4().int % 10**12:012}"


def alive(marked: str) -> list[int]:
    """Processes with this text among their arguments, zombies left out."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if marked.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def family(pid: int) -> set[int]:
    """All descendants of a process, itself left out."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def gone(pids: set[int]) -> bool:
    """True when all of these are dead."""
    return not any(is_alive(pid) for pid in pids)


def is_alive(pid: int) -> bool:
    """True for a living process; False for a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
