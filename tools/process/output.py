"""Reading a command's pipe through the event loop: bounded in memory, in reports, and in the loop's time."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

from tools.contract import Captured, Command, OutputChunk, Progress
from tools.process.capture import HeadAndTail, LiveText, Spill
from tools.process.streams import content_as_file
from tools.process.zygote.wire import Streams

READ_SIZE = 65536
REPORT_INTERVAL = 1 / 30
"""Seconds between two live reports (docs/decisions/budgets.md)."""
READ_BUDGET = 8 * 1024 * 1024
"""Bytes read between two reports: `yes` is slowed down by its pipe, not buffered (FAULTS 48)."""
DRAIN_LIMIT = 16 * 1024 * 1024
"""Bytes read after the end, should a foreign process hold the pipe and keep writing."""


class Output:
    """Reads a command's pipe through the event loop, a bounded amount at a time."""

    def __init__(self, command: Command, report: Callable[[Progress], None] | None) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._given = command.stdin
        self._stdin = -1
        self._report = report
        self._kept = HeadAndTail(command.keep_head, command.keep_tail)
        self._live = LiveText() if report else None
        self._spill = Spill(command.spill, command.keep_head + command.keep_tail) if command.spill else None
        self._unspilled: list[bytes] = []
        self._budget = READ_BUDGET
        self._arrived = asyncio.Event()
        self._stopping = asyncio.Event()
        self._at_end = False
        self._task: asyncio.Task[None] | None = None

    def child_ends(self) -> Streams:
        """Stdin of the command, and the one pipe of both its outputs.

        Raises:
            OSError: the content of stdin cannot be stored.
        """
        self._stdin = content_as_file(self._given)
        return (self._stdin, self.writer, self.writer)

    def start(self) -> None:
        """Begin to read; the writing end now belongs to the supervisor alone."""
        self._close_child_ends()
        asyncio.get_running_loop().add_reader(self.reader, self._read)
        self._task = asyncio.create_task(self._follow())

    def fall_silent(self) -> None:
        """Report nothing more."""
        self._report = self._live = None

    def captured(self) -> Captured:
        """Head, tail and counts of the output so far."""
        return self._kept.captured(self._spill.path if self._spill else None)

    async def finish(self) -> Captured:
        """Read what the dead have left in the pipe and close everything."""
        if self._task is not None:
            asyncio.get_running_loop().remove_reader(self.reader)
            drained = 0
            while not self._at_end and drained < DRAIN_LIMIT and (count := self._read()):
                drained += count
            self._stopping.set()
            self._arrived.set()
            await self._task
            if self._spill is not None:
                await asyncio.to_thread(self._spill.close)
            self._task = None
        self.close()
        return self.captured()

    def close(self) -> None:
        """Close every descriptor."""
        self._close_child_ends()
        if self.reader >= 0:
            os.close(self.reader)
            self.reader = -1

    def _close_child_ends(self) -> None:
        for descriptor in (self.writer, self._stdin):
            if descriptor >= 0:
                os.close(descriptor)
        self.writer = self._stdin = -1

    def _read(self) -> int:
        try:
            chunk = os.read(self.reader, READ_SIZE)
        except BlockingIOError:
            return 0
        except OSError:
            chunk = b""
        self._at_end = not chunk
        self._budget -= len(chunk)
        if self._at_end or self._budget <= 0:
            asyncio.get_running_loop().remove_reader(self.reader)
        self._kept.feed(chunk)
        if self._live is not None:
            self._live.feed(chunk)
        if self._spill is not None and chunk:
            self._unspilled.append(chunk)
        self._arrived.set()
        return len(chunk)

    async def _follow(self) -> None:
        """Pass on new output, at most `1 / REPORT_INTERVAL` times a second."""
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            final = self._stopping.is_set()
            await self._pass_on(final=final)
            if final:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPORT_INTERVAL):
                    await self._stopping.wait()
            if self._budget <= 0 and not self._at_end and not self._stopping.is_set():
                loop.add_reader(self.reader, self._read)
            self._budget = READ_BUDGET

    async def _pass_on(self, *, final: bool) -> None:
        if self._live is not None and self._report is not None and (text := self._live.take(final=final)):
            self._report(OutputChunk(text))
        if self._spill is not None and self._unspilled:
            chunks, self._unspilled = self._unspilled, []
            await asyncio.to_thread(self._spill.write, b"".join(chunks))
