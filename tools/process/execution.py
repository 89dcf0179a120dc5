"""One command under its supervisor, as Phoenix follows it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from tools.contract import Captured, Finished, OutputSoFar, ProcessesEnded, ProcessStarted, ProgramEnded, Progress
from tools.process.link import ZygoteLink
from tools.process.network import NetworkUse, keep_descriptors
from tools.process.output import ProgramStreams
from tools.process.zygote.wire import SupervisorRequest

LINES_SIZE = 4096


class NotSupervisedError(Exception):
    """The supervisor was gone before it had read the request: nothing ran."""


class Account(Struct, eq=False):
    """State of a command as reported by its supervisor."""

    supervisor: int = 0
    pid: int = 0
    started: int = 0
    failure: int = 0
    status: int | None = None
    leftovers: tuple[str, ...] = ()
    survivors: tuple[int, ...] = ()
    killed: int = 0
    named: tuple[str, ...] = ()
    """Names of the first processes that a stop killed, with pid and ports."""
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
            case "killed":
                pid, ports, name = rest.split(" ", 2)
                self.named += (name_killed(int(pid), ports, name),)
            case "stuck":
                self.survivors = tuple(int(number) for number in rest.split())
            case "ended":
                self.killed = int(rest)
                self.survivors = ()
                self.ended = True
            case _:
                pass


def name_killed(pid: int, ports: str, name: str) -> str:
    """Words for a process of the line `killed`: `node 4711 (port 8080)`."""
    words = f"{name} {pid}" if pid else name
    return words if ports == "-" else f"{words} (port {ports.replace(',', ', ')})"


class Execution:
    """A command from its start to its empty tree."""

    def __init__(
        self, streams: ProgramStreams, report: Callable[[Progress], None] | None, use: NetworkUse | None = None
    ) -> None:
        self.account = Account()
        self.use = use
        """The network of the command; None where it has none by host."""
        self.over = asyncio.Event()
        """Set when the tree is empty, the supervisor reports survivors, or the supervisor is lost."""
        self.begun = asyncio.Event()
        """Set when the program runs, could not be run, or all is over."""
        self._report = report
        self._streams = streams
        self._control, self._theirs = socket.socketpair()
        self._control.setblocking(False)
        self._listener: asyncio.Task[None] | None = None
        self._began = 0.0

    async def start(self, request: SupervisorRequest, link: ZygoteLink) -> None:
        """Hand the command to a new supervisor.

        Raises:
            OSError: there is no zygote, or the request cannot be expressed.
        """
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        try:
            encoded = _encode_request(request)
            link.send(self._theirs, self._streams.child_ends())
        except OSError:
            self.account.ended = True
            self.over.set()
            raise
        self._theirs.close()
        self._streams.start()
        self._listener = asyncio.create_task(self._listen())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await loop.sock_sendall(self._control, encoded)

    def kill(self) -> None:
        """End the whole tree; `over` tells when that is done."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def fall_silent(self) -> None:
        """Stop reporting: the receiver no longer waits."""
        self._report = None
        self._streams.fall_silent()

    @property
    def is_ending(self) -> bool:
        """True once the program itself, or all of the tree, has ended."""
        return self.account.status is not None or self.over.is_set()

    @property
    def elapsed(self) -> float:
        """Seconds since it was started."""
        return asyncio.get_running_loop().time() - self._began

    def capture(self) -> Captured:
        """The output so far."""
        captured = self._streams.capture()
        return replace(captured, hosts=self.use.hosts) if self.use is not None else captured

    async def finish(self) -> Captured:
        """Collect the rest of the output and close every descriptor.

        A supervisor that still kills survivors continues by itself.
        """
        self.begun.set()
        self.over.set()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait({self._listener})
        self._control.close()
        self._theirs.close()
        return await self._streams.finish()

    def report_end(self) -> None:
        """Report the processes that a stop killed."""
        if self._report is not None:
            self._report(ProcessesEnded(self.account.killed, self.account.survivors, self.account.named))

    def report_output(self, captured: Captured) -> None:
        """Report all output so far, which a stop would lose."""
        if self._report is not None:
            self._report(OutputSoFar(captured))

    def report_program(self, captured: Captured) -> None:
        """Report that the program itself is over."""
        if self._report is not None:
            ended = self.build_result(captured, timed_out=False)
            self._report(ProgramEnded(captured, ended.exit_code, ended.duration))

    def build_result(self, captured: Captured, *, timed_out: bool) -> Finished:
        """The account as the result of a run."""
        status = self.account.status
        exited = status is not None and os.WIFEXITED(status)
        signaled = status is not None and os.WIFSIGNALED(status)
        return Finished(
            exit_code=os.WEXITSTATUS(status) if status is not None and exited else None,
            signal=os.WTERMSIG(status) if status is not None and signaled else None,
            captured=captured,
            duration=self.elapsed,
            timed_out=timed_out,
            leftovers=self.account.leftovers,
            survivors=self.account.survivors,
        )

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        buffer = b""
        try:
            while chunk := await self._receive(loop):
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    self._hear(line.decode("utf-8", "replace"))
        except ConnectionResetError:
            return
        finally:
            self.begun.set()
            self.over.set()

    async def _receive(self, loop: asyncio.AbstractEventLoop) -> bytes:
        """The next bytes of the supervisor; a listener that comes with them goes to the network of the command."""
        if self.use is None or self.use.is_listening:
            return await loop.sock_recv(self._control, LINES_SIZE)
        while True:
            try:
                chunk, sent, _, _ = socket.recv_fds(self._control, LINES_SIZE, 1, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                await _readable(loop, self._control)
                continue
            if (listening := keep_descriptors(sent)) >= 0:
                self.use.take(listening)
            return chunk

    def _hear(self, line: str) -> None:
        known = self.account.pid
        self.account.hear(line)
        if self.account.pid and not known and self._report is not None:
            self._report(ProcessStarted(self.account.pid, self.account.started))
        if self.account.pid or self.account.failure:
            self.begun.set()
        if self.account.ended or self.account.survivors:
            self.over.set()


async def _readable(loop: asyncio.AbstractEventLoop, control: socket.socket) -> None:
    """Wait until something can be received."""
    ready = asyncio.Event()
    loop.add_reader(control, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(control)


def _encode_request(request: SupervisorRequest) -> bytes:
    try:
        return request.encode()
    except ValueError as error:
        raise OSError(errno.EINVAL, "the command holds a character no program can be given") from error
