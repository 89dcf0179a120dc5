"""One command under its supervisor, as Phoenix follows it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from tools.contract import Captured, Command, Finished, OutputChunk, ProcessStarted, Progress
from tools.process.capture import HeadAndTail, LiveText, Spill
from tools.process.link import ZygoteLink
from tools.process.zygote.wire import Request

READ_SIZE = 65536
REPORT_INTERVAL = 1 / 30
"""Seconds between two live reports (DESIGN 3)."""
READ_BUDGET = 8 * 1024 * 1024
"""Bytes read between two reports: `yes` is slowed down by its pipe, not buffered (FAULTS 48)."""
DRAIN_LIMIT = 16 * 1024 * 1024
"""Bytes read after the end, should a stranger hold the pipe and keep writing."""


class NotSupervisedError(Exception):
    """The supervisor was gone before it had read the request: nothing ran."""


@dataclass(slots=True)
class Account:
    """What the supervisor has said so far."""

    supervisor: int = 0
    pid: int = 0
    started: int = 0
    failure: int = 0
    status: int | None = None
    leftovers: tuple[str, ...] = ()
    survivors: tuple[int, ...] = ()
    killed: int = 0
    ended: bool = False

    def hear(self, line: str) -> None:
        """Note one line of `tools.process.zygote.wire`."""
        word, _, rest = line.partition(" ")
        match word:
            case "ready":
                self.supervisor = int(rest)
            case "started":
                self.pid, self.started = (int(number) for number in rest.split())
            case "failed":
                self.failure = int(rest)
            case "exited":
                self.status = int(rest)
            case "left":
                self.leftovers += (rest,)
            case "stuck":
                self.survivors = tuple(int(number) for number in rest.split())
            case "ended":
                self.killed = int(rest)
                self.survivors = ()
                self.ended = True


class Output:
    """Reads a command's pipe through the event loop, a bounded amount at a time."""

    def __init__(
        self, command: Command, report: Callable[[Progress], None] | None, clean: Callable[[str], str]
    ) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self._report = report
        self._kept = HeadAndTail(command.keep_head, command.keep_tail)
        self._live = LiveText(clean) if report else None
        self._spill = Spill(command.spill, command.keep_head + command.keep_tail) if command.spill else None
        self._unspilled: list[bytes] = []
        self._budget = READ_BUDGET
        self._arrived = asyncio.Event()
        self._stopping = asyncio.Event()
        self._at_end = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read; the writing end now belongs to the supervisor alone."""
        os.close(self.writer)
        self.writer = -1
        asyncio.get_running_loop().add_reader(self.reader, self._read)
        self._task = asyncio.create_task(self._follow())

    def captured(self) -> Captured:
        """What is kept so far."""
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
        """Let go of the pipe."""
        for descriptor in (self.reader, self.writer):
            if descriptor >= 0:
                os.close(descriptor)
        self.reader = self.writer = -1

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
        """Pass on what arrived, at most `1 / REPORT_INTERVAL` times a second."""
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


class Execution:
    """A command from its start to its empty tree."""

    def __init__(
        self, command: Command, report: Callable[[Progress], None] | None, clean: Callable[[str], str]
    ) -> None:
        self.account = Account()
        self.over = asyncio.Event()
        """Set when the tree is empty, the supervisor reports survivors, or the supervisor is lost."""
        self.begun = asyncio.Event()
        """Set when the program runs, could not be run, or all is over."""
        self._command = command
        self._report = report
        self._output = Output(command, report, clean)
        self._control, self._theirs = socket.socketpair()
        self._control.setblocking(False)
        self._listener: asyncio.Task[None] | None = None
        self._began = 0.0

    async def start(self, request: Request, link: ZygoteLink) -> None:
        """Hand the command to a new supervisor.

        Raises:
            OSError: there is no zygote, or the request cannot be expressed.
        """
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        try:
            encoded = request.encode()
        except (ValueError, UnicodeError) as error:
            raise OSError(errno.EINVAL, "the command holds a character no program can be given") from error
        stdin = _as_file(self._command.stdin)
        try:
            link.send(self._theirs, self._output.writer, stdin)
        finally:
            os.close(stdin)
        self._theirs.close()
        self._output.start()
        self._listener = asyncio.create_task(self._listen())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await loop.sock_sendall(self._control, encoded)

    def kill(self) -> None:
        """End the whole tree; `over` tells when that is done."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def captured(self) -> Captured:
        """The output so far."""
        return self._output.captured()

    async def finish(self) -> Captured:
        """Collect the rest of the output and let go of every descriptor.

        A supervisor that still fights survivors goes on by itself.
        """
        self.begun.set()
        self.over.set()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait({self._listener})
        self._control.close()
        self._theirs.close()
        return await self._output.finish()

    def finished(self, captured: Captured, *, timed_out: bool) -> Finished:
        """The account as the result of a run."""
        status = self.account.status
        exited = status is not None and os.WIFEXITED(status)
        signaled = status is not None and os.WIFSIGNALED(status)
        return Finished(
            exit_code=os.WEXITSTATUS(status) if status is not None and exited else None,
            signal=os.WTERMSIG(status) if status is not None and signaled else None,
            captured=captured,
            duration=asyncio.get_running_loop().time() - self._began,
            timed_out=timed_out,
            leftovers=self.account.leftovers,
            survivors=self.account.survivors,
        )

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        buffer = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := await loop.sock_recv(self._control, READ_SIZE):
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    self._hear(line.decode("utf-8", "replace"))
        self.begun.set()
        self.over.set()

    def _hear(self, line: str) -> None:
        known = self.account.pid
        self.account.hear(line)
        if self.account.pid and not known and self._report is not None:
            self._report(ProcessStarted(self.account.pid, self.account.started))
        if self.account.pid or self.account.failure:
            self.begun.set()
        if self.account.ended or self.account.survivors:
            self.over.set()


def _as_file(content: bytes | None) -> int:
    """A descriptor that gives `content` and then ends; nobody has to feed it."""
    if content is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return os.dup(file.fileno())
