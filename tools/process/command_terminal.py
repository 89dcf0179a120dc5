"""The terminal of a command: its output as text with colours, its keys, its size; or the user's, lent to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tools.contract import Captured, Command, Progress
from tools.process.output import DRAIN_LIMIT, REPORT_INTERVAL, HeadAndTail, Spill
from tools.process.service import set_size
from tools.process.zygote.wire import Streams
from tools.terminal.text import ScreenSplitter, TerminalText, append_whole_screen
from tools.terminal.values import TerminalFacts, TerminalModes, TerminalRows, TerminalSize

MOST_WAITING: Final = 256 * 1024
"""Bytes that wait for the user's terminal; what a program writes beyond them waits in its own."""
AT_ONCE: Final = 64 * 1024
"""Bytes of one read, and a chunk more."""


class TerminalLoan:
    """The user's own terminal while a running command has it."""

    def __init__(self, owner: CommandTerminal, begins: bytes) -> None:
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


READ_SIZE: Final = 64 * 1024
WORK: Final = 0.016
"""Seconds that reading takes of each report's interval: a flood waits in its terminal, and the event loop is free."""
WORK_AT_ONCE: Final = 0.004
"""Seconds of it between two turns of the event loop."""
SHOWN_ROWS: Final = 50
"""Rows of a report."""
MOST_DRAWN: Final = 64 * 1024
"""Bytes drawn on the alternate screen that are kept for the user's terminal, and a chunk more; the rest waits."""
MOST_TYPED: Final = 64 * 1024
"""Bytes that wait for a program that does not read; more are dropped."""


class CommandTerminal:
    """A pty whose slave is all three streams of a command; implements `tools.process.output.ProgramStreams`."""

    def __init__(
        self, command: Command, size: TerminalSize, report: Callable[[Progress], None] | None, mark: str = ""
    ) -> None:
        self._report = report
        self.text = TerminalText(size, HeadAndTail(command.keep_head, command.keep_tail), mark)
        """The text so far, and the modes that the program has set."""
        self._spill = Spill(command.spill, command.keep_head + command.keep_tail)
        self._typed = deque[bytes]()
        self._reads = self._writes = False
        """True while the event loop waits for the pty."""
        self._left = WORK
        self._changed = False
        self._arrived = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ended: Captured | None = None
        self._splitter = ScreenSplitter()
        self._drawn = deque[bytes]()
        """Output on the alternate screen, for the terminal that the program waits for."""
        self._is_silent = False
        self._lent: TerminalLoan | None = None
        self.master, self._slave = os.openpty()
        try:
            os.set_blocking(self.master, False)
            set_size(self.master, size)
            # Ctrl+Z stops nothing: no shell is there that could continue it.
            settings = termios.tcgetattr(self._slave)
            settings[6][termios.VSUSP] = b"\0"
            termios.tcsetattr(self._slave, termios.TCSANOW, settings)
        except OSError:
            self._close()
            raise

    @property
    def modes(self) -> TerminalModes:
        """Modes that the program has set."""
        return self.text.modes

    def child_ends(self) -> Streams:
        """The slave, three times."""
        return (self._slave, self._slave, self._slave)

    def start(self) -> None:
        """Close the slave, which the supervisor has now, and begin to read."""
        self._close_slave()
        self._wait_for_output()
        self._task = asyncio.create_task(self._follow())

    def fall_silent(self) -> None:
        """Report nothing more, and wait for no terminal: it gets none."""
        self._report = None
        self._is_silent = True
        self._drawn.clear()
        self.go_on()

    def capture(self) -> Captured:
        """Head, tail and facts of the output so far."""
        if self._ended is not None:
            return self._ended
        kept, runs = self.text.capture()
        return replace(kept.capture(self._spill.path), terminal=TerminalFacts(runs, self.text.folder))

    async def finish(self) -> Captured:
        """Read what the dead have left and close everything."""
        if self._task is not None:
            self._stop_reading()
            if self._writes:
                asyncio.get_running_loop().remove_writer(self.master)
                self._writes = False
            drained = 0
            while drained < DRAIN_LIMIT and (chunk := self._read_chunk()):
                self._take(chunk)
                self._drawn.clear()
                drained += len(chunk)
            self._changed = True
            self._take(b"", final=True)
            if self._lent is not None:
                self._lent.end()
            self._stopping.set()
            self._arrived.set()
            await self._task
            self._task = None
        if self._ended is None:
            self.text.finish()
            await asyncio.to_thread(self._spill_all, self.text.take_final())
            self._ended = self.capture()
        self._close()
        return self._ended

    @property
    def wants_screen(self) -> bool:
        """True while the program uses the alternate screen, for which it needs the user's terminal."""
        return self._splitter.is_drawing and not self._is_silent

    @property
    def sequences(self) -> bytes:
        """Sequences that put a terminal into the modes that the program has set."""
        return self._splitter.sequences()

    def lend(self, size: TerminalSize) -> TerminalLoan:
        """Lend it the user's terminal; from now on all output is for that one, lines also for the text."""
        if self._lent is not None:
            self._lent.end()
        self._lent = TerminalLoan(self, self.sequences + append_whole_screen(b"".join(self._drawn)))
        self._drawn.clear()
        self.set_size(TerminalSize(size.rows, max(size.columns - 1, 1)))  # SIGWINCH, whatever size it had
        self.set_size(size)
        self.go_on()
        return self._lent

    def take_back(self) -> None:
        """End the loan."""
        self._lent = None
        self._changed = True
        self._arrived.set()
        self.go_on()

    def go_on(self) -> None:
        """Read on after a pause, unless there is still no room."""
        if self._task is not None and not self._reads and self._left > 0 and not self._stopping.is_set():
            self._wait_for_output()

    def type(self, keys: bytes) -> None:
        """Type into the terminal; keys wait while the program does not read."""
        if self.master >= 0 and sum(map(len, self._typed)) + len(keys) <= MOST_TYPED:
            self._typed.append(keys)
            self._write()

    def resize(self, size: TerminalSize) -> None:
        """Set another size; the program receives SIGWINCH. The size of a lent terminal stays."""
        if self._lent is None:
            self.set_size(size)

    def set_size(self, size: TerminalSize) -> None:
        """Set the size of its terminal, a lent one included."""
        if self.master >= 0:
            set_size(self.master, size)
            self.text.screen.resize(size.columns, size.rows)

    def _spill_all(self, text: bytes) -> None:
        self._spill.write(text)
        self._spill.close()

    def _read(self) -> None:
        """Read for a bounded time; a flood waits in its terminal until the next report."""
        began, spent = time.monotonic(), 0.0
        while spent < WORK_AT_ONCE and (chunk := self._read_chunk()):
            self._take(chunk)
            self._changed = True
            spent = time.monotonic() - began
            if self._is_full:
                break
        self._left -= spent
        if self._left <= 0 or self._is_full:
            self._stop_reading()
        self._arrived.set()

    @property
    def _is_full(self) -> bool:
        """True while more output must wait in the terminal for the user's own."""
        if self._lent is not None:
            return self._lent.is_full
        return self.wants_screen and sum(map(len, self._drawn)) >= MOST_DRAWN

    def _take(self, chunk: bytes, *, final: bool = False) -> None:
        """Lines are text; what is drawn is for the user's terminal alone, which gets every byte as it comes."""
        if self._lent is not None:
            self._lent.put(chunk)
        for piece in self._splitter.feed(chunk, final=final):
            if not piece.is_drawn:
                self._drawn.clear()
                self.text.feed(piece.content)
            elif self._lent is None and not self._is_silent:
                self._drawn.append(piece.content)
        if not self._splitter.is_drawing:
            self._drawn.clear()

    def _read_chunk(self) -> bytes:
        """The next bytes; empty where there are none now, or never again."""
        try:
            chunk = os.read(self.master, READ_SIZE)
        except BlockingIOError:
            return b""
        except OSError:  # EIO: hung up
            chunk = b""
        if not chunk:
            self._stop_reading()
        return chunk

    def _newest(self) -> TerminalRows:
        rows = self.text.newest(SHOWN_ROWS)
        if self.wants_screen:
            return replace(rows, cursor=None, wants_screen=True)
        return replace(rows, reads_keys=True) if self.modes.application_keys else rows

    async def _follow(self) -> None:
        """Report new rows, at most `1 / REPORT_INTERVAL` times a second."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if self._changed and self._report is not None:
                self._report(self._newest())
            self._changed = False
            if final := self.text.take_final():
                await asyncio.to_thread(self._spill.write, final)
            if self._stopping.is_set():
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPORT_INTERVAL):
                    await self._stopping.wait()
            spent, self._left = self._left <= 0, WORK
            if spent and not self._stopping.is_set():
                self._wait_for_output()

    def _write(self) -> None:
        while self._typed:
            try:
                count = os.write(self.master, self._typed[0])
            except BlockingIOError:
                break
            except OSError:  # hung up
                self._typed.clear()
                break
            self._typed[0] = self._typed[0][count:]
            if not self._typed[0]:
                self._typed.popleft()
        loop = asyncio.get_running_loop()
        if self._typed and not self._writes:
            loop.add_writer(self.master, self._write)
        elif not self._typed and self._writes:
            loop.remove_writer(self.master)
        self._writes = bool(self._typed)

    def _wait_for_output(self) -> None:
        if self._is_full:
            return
        asyncio.get_running_loop().add_reader(self.master, self._read)
        self._reads = True

    def _stop_reading(self) -> None:
        if self._reads:
            asyncio.get_running_loop().remove_reader(self.master)
            self._reads = False

    def _close(self) -> None:
        self._close_slave()
        self._typed.clear()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def _close_slave(self) -> None:
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1
