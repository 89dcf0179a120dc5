"""The output of a program: its streams read through the event loop, kept in part in memory, whole in a file."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tools.clean import clean
from tools.contract import Captured, Command, OutputChunk, Progress
from tools.files.own_files import make_folder, open_file
from tools.process.zygote.wire import Streams


class ProgramStreams(Protocol):
    """Both ends of stdin, stdout and stderr; made for one start of a program."""

    def child_ends(self) -> Streams:
        """Stdin, stdout and stderr of the program; one descriptor may serve for several.

        Raises:
            OSError: they cannot be made.
        """
        ...

    def start(self) -> None:
        """Close the child's ends, which the supervisor has now, and begin to read."""
        ...

    def fall_silent(self) -> None:
        """Report nothing more."""
        ...

    def capture(self) -> Captured:
        """The collected output so far."""
        ...

    async def finish(self) -> Captured:
        """Collect the rest and close every descriptor without another owner; also when `start` was never called."""
        ...


def content_as_file(content: bytes | None) -> int:
    """Open a descriptor that gives `content` and then ends, without a writer; /dev/null for None.

    Raises:
        OSError: there is no room for it.
    """
    if content is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return os.dup(file.fileno())


SPILL_LIMIT = 100 * 1024 * 1024
"""Bytes a spill file may take: a runaway command must not fill the disk."""
LIVE_LIMIT = 32 * 1024
"""Bytes of one live report; what came before them is only counted."""
OPEN_ESCAPE = re.compile(r"\x1b[^a-zA-Z\x07\\~\x1b]{0,64}\Z")
CONTINUATION = range(0x80, 0xC0)


class HeadAndTail:
    """Keeps the first and the last bytes of a stream and counts the rest."""

    def __init__(self, keep_head: int, keep_tail: int) -> None:
        self._keep_head = keep_head
        self._keep_tail = keep_tail
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._line_ends = 0
        self._last = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._total += len(chunk)
        self._line_ends += chunk.count(b"\n")
        self._last = chunk[-1:] or self._last
        room = self._keep_head - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        if len(self._tail) > 2 * self._keep_tail + 65536:
            del self._tail[: len(self._tail) - self._keep_tail]

    @property
    def total(self) -> int:
        """Count of all bytes received."""
        return self._total

    def capture(self, spill: Path | None = None) -> Captured:
        """Head, tail and counts of the output so far."""
        tail = bytes(self._tail[-self._keep_tail :]) if self._keep_tail else b""
        dropped = self._total - len(self._head) - len(tail)
        lines = self._line_ends + (self._last not in {b"", b"\n"})
        return Captured(bytes(self._head), tail, dropped, spill, lines=lines)


class Spill:
    """The whole output in a file, from the moment it no longer fits in memory.

    Blocks: call it from a thread. A disk that is full, or a folder that is gone, ends the file and not
    the command: `path` is None then, and the kept parts and the dropped count are all there is.
    """

    def __init__(self, path: Path | None, threshold: int) -> None:
        self.path: Path | None = None
        self._wanted = path
        self._threshold = threshold
        self._early = bytearray()
        self._written = 0
        self._cut = 0
        self._descriptor = -1

    def write(self, chunk: bytes) -> None:
        """Take the next bytes of the output."""
        if self._wanted is None:
            return
        try:
            self._take(chunk)
        except OSError:
            self._give_up()

    def close(self) -> None:
        """Finish the file; its last line says when it was cut."""
        if self._descriptor < 0:
            return
        if self._cut:
            note = f"\n[Phoenix stopped writing here: {self._cut} more bytes came]\n"
            with contextlib.suppress(OSError):
                os.write(self._descriptor, note.encode())
        os.close(self._descriptor)
        self._descriptor = -1

    def _take(self, chunk: bytes) -> None:
        if self._descriptor < 0:
            self._early += chunk
            if len(self._early) <= self._threshold:
                return
            assert self._wanted is not None
            make_folder(self._wanted.parent)
            self._descriptor = open_file(self._wanted, os.O_WRONLY)
            self.path = self._wanted
            os.ftruncate(self._descriptor, 0)
            chunk = bytes(self._early)
            self._early.clear()
        room = max(0, SPILL_LIMIT - self._written)
        view = memoryview(chunk)[:room]
        self._cut += len(chunk) - len(view)
        while view:
            count = os.write(self._descriptor, view)
            self._written += count
            view = view[count:]

    def _give_up(self) -> None:
        self._cut = 0
        regular = self._descriptor >= 0 and stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        self.close()
        if self.path is not None and regular:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.path = None
        self._wanted = None
        self._early.clear()


class LiveText:
    """The newest output as cleaned text, bounded however fast it comes."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._skipped = 0
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._pending += chunk
        excess = len(self._pending) - LIVE_LIMIT
        if excess > LIVE_LIMIT:
            del self._pending[:excess]
            self._skipped += excess

    def take(self, *, final: bool = False) -> str:
        """Text received since the last call; an incomplete escape sequence waits for its end."""
        text = self._held
        if self._skipped:
            text = f"\n[{self._skipped} bytes not shown]\n"
            self._decoder.reset()
            while self._pending and self._pending[0] in CONTINUATION:
                del self._pending[0]
            self._skipped = 0
        text += self._decoder.decode(bytes(self._pending), final)
        self._pending.clear()
        self._held = ""
        opened = None if final else OPEN_ESCAPE.search(text, max(0, len(text) - 80))
        if opened:
            self._held = text[opened.start() :]
            text = text[: opened.start()]
        return clean(text) if text else ""


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

    def capture(self) -> Captured:
        """Head, tail and counts of the output so far."""
        return self._kept.capture(self._spill.path if self._spill else None)

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
        return self.capture()

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
            if self._live is not None and self._report is not None and (text := self._live.take(final=final)):
                self._report(OutputChunk(text))
            if self._spill is not None and self._unspilled:
                chunks, self._unspilled = self._unspilled, []
                await asyncio.to_thread(self._spill.write, b"".join(chunks))
            if final:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPORT_INTERVAL):
                    await self._stopping.wait()
            if self._budget <= 0 and not self._at_end and not self._stopping.is_set():
                loop.add_reader(self.reader, self._read)
            self._budget = READ_BUDGET


class Readiness:
    """Waits for the descriptors of one owner; at most one wait each for reading and for writing at a time."""

    def __init__(self) -> None:
        self._waits: dict[asyncio.Future[None], Callable[[], object]] = {}
        """Waits, and what removes each from the event loop."""
        self.closed = False

    async def readable(self, descriptor: int) -> None:
        """Wait until a read would not block, or until `close`."""
        loop = asyncio.get_running_loop()
        if not self.closed:
            wait = loop.create_future()
            loop.add_reader(descriptor, _resolve, wait)
            await self._wait(wait, lambda: loop.remove_reader(descriptor))

    async def writable(self, descriptor: int) -> None:
        """Wait until a write would not block, or until `close`."""
        loop = asyncio.get_running_loop()
        if not self.closed:
            wait = loop.create_future()
            loop.add_writer(descriptor, _resolve, wait)
            await self._wait(wait, lambda: loop.remove_writer(descriptor))

    def close(self) -> None:
        """Let every wait return and leave the event loop, so that the descriptors can be closed."""
        self.closed = True
        waits, self._waits = self._waits, {}
        for wait, remove in waits.items():
            remove()
            _resolve(wait)

    async def _wait(self, wait: asyncio.Future[None], remove: Callable[[], object]) -> None:
        self._waits[wait] = remove
        try:
            await wait
        finally:
            if self._waits.pop(wait, None) is not None:  # else closed: the number may belong to another by now
                remove()


def _resolve(wait: asyncio.Future[None]) -> None:
    if not wait.done():
        wait.set_result(None)
