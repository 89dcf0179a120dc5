"""Programs that Phoenix talks with over their streams or a terminal, below the supervisor of commands."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from types import TracebackType
from typing import Self

from tools.contract import Captured, Command
from tools.process.line_channel import LINE_LIMIT, LineChannel
from tools.process.one_shot import Drain, run_to_end
from tools.process.output import Readiness
from tools.process.plan import to_the_end
from tools.process.supervision import Running, Supervision
from tools.process.zygote.wire import Streams
from tools.services import ProgramExit, ProgramLimits, ProgramResult, ServiceCommand, ServiceEndedError, TerminalSize

STDERR_KEPT = 64 * 1024
"""Bytes of the end of stderr."""
END_GRACE = 2.0
"""Seconds between the end of stdin and the kill."""


class ServiceStreams:
    """Two pipes for the owner of the service, and stderr drained."""

    def __init__(self) -> None:
        self._open: list[int] = []
        self.claimed = False
        """True once the service runs: its owner closes stdin and stdout."""
        try:
            self._child_stdin, self.stdin = self._pipe()
            self.stdout, self._child_stdout = self._pipe()
            self._stderr = Drain(0, STDERR_KEPT)
        except OSError:
            self._close(*self._open)
            raise
        for descriptor in (self.stdin, self.stdout):
            os.set_blocking(descriptor, False)

    def child_ends(self) -> Streams:
        """Three pipes."""
        return (self._child_stdin, self._child_stdout, self._stderr.child_end)

    def start(self) -> None:
        """Close the child's ends and begin to drain stderr."""
        self._close(self._child_stdin, self._child_stdout)
        self._stderr.start()

    def fall_silent(self) -> None:
        """Do nothing: no progress is reported."""

    def capture(self) -> Captured:
        """The end of stderr so far."""
        return self._stderr.capture()

    async def finish(self) -> Captured:
        """Collect the rest of stderr; close the pipes of a service that never ran and so has no owner."""
        if not self.claimed:
            self._close(*self._open)
        return self._stderr.finish()

    def close_stdin(self) -> None:
        """Close the writing end of stdin."""
        self._close(self.stdin)
        self.stdin = -1

    def close_stdout(self) -> None:
        """Close the reading end of stdout."""
        self._close(self.stdout)
        self.stdout = -1

    def give_away(self) -> tuple[int, int]:
        """Stdin and stdout, which the caller closes from now on."""
        given = (self.stdin, self.stdout)
        self._open = []
        self.stdin = self.stdout = -1
        return given

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open += ends
        return ends

    def _close(self, *descriptors: int) -> None:
        for descriptor in descriptors:
            if descriptor in self._open:
                self._open.remove(descriptor)
                os.close(descriptor)


class EndingProgram:
    """The end of a program that runs beside the conversation: noticed, or brought about, once for all who wait."""

    def __init__(self, supervision: Supervision, running: Running) -> None:
        self._supervision = supervision
        self._running = running
        self._following = asyncio.create_task(self._follow())

    @property
    def pid(self) -> int:
        """Process id, as seen outside of a sandbox."""
        return self._running.execution.account.pid

    async def wait_ended(self) -> ProgramExit:
        """Wait until its tree is gone. Cancelling stops the waiting alone."""
        return await asyncio.shield(self._following)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the program keeps."""
        lent = self._running.plan.confinement.server_home
        return (lent.note,) if lent is not None and lent.note else ()

    async def refusals(self, *outputs: Captured) -> str:
        """Clauses on what the sandbox of the program refused, by its outputs."""
        return await self._supervision.refusals(self._running, *outputs)

    async def kill_after(self, grace: float) -> ProgramExit:
        """Wait `grace` seconds for its end, then kill the tree. Cancelling ends the grace at once."""
        try:
            await asyncio.wait({self._following}, timeout=grace)
        finally:
            await self._supervision.end(self._running)
        return await to_the_end(self._following)

    async def _follow(self) -> ProgramExit:
        execution = self._running.execution
        await execution.over.wait()
        stderr = await self._supervision.end(self._running)
        finished = execution.build_result(stderr, timed_out=False)
        return ProgramExit(
            finished.exit_code, finished.signal, finished.duration, stderr, finished.leftovers, finished.survivors
        )


class DuplexService:
    """A service with separate stdin, stdout and stderr; its tree ends with `end`, with Phoenix, or by itself."""

    def __init__(self, ending: EndingProgram, streams: ServiceStreams) -> None:
        self._ending = ending
        self._streams = streams
        self._channel: LineChannel | None = None
        self.closed = False
        """True once `end` has closed its descriptors."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end(END_GRACE if error is None else 0)

    @property
    def pid(self) -> int:
        """Process id, as seen outside of a sandbox."""
        return self._ending.pid

    @property
    def stdin(self) -> int:
        """Descriptor to write to, non-blocking; -1 once it is closed or taken."""
        return self._streams.stdin

    @property
    def stdout(self) -> int:
        """Descriptor to read from, non-blocking, also after the end of the program; -1 once it is closed or taken."""
        return self._streams.stdout

    @property
    def stderr(self) -> Captured:
        """The last `STDERR_KEPT` bytes of stderr so far, and how many came before them."""
        return self._streams.capture()

    async def refusals(self, text: str = "") -> str:
        """Clauses on what its sandbox refused, by these words, without any by its stderr; empty without a refusal."""
        return await self._ending.refusals(Captured(text.encode("utf-8", "replace")) if text else self.stderr)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what it keeps."""
        return self._ending.notes

    def channel(self, limit: int = LINE_LIMIT) -> LineChannel:
        """The one channel over stdin and stdout; `limit` is in bytes a line, and that of the first call counts.

        Raises:
            ServiceEndedError: one of them is closed or taken.
        """
        if self._channel is None:
            if min(self.stdin, self.stdout) < 0:
                raise ServiceEndedError("The streams of this program are closed or belong to another.")
            self._channel = LineChannel(self.stdout, self.stdin, limit)
        return self._channel

    def take(self) -> tuple[int, int]:
        """Hand over stdin and stdout; the caller closes them. What a channel had read is lost.

        A process that was sent them holds copies, so that the program sees the end of its input only once that
        process has closed them, too.
        """
        if self._channel is not None:
            self._channel.close()
        return self._streams.give_away()

    def close_stdin(self) -> None:
        """Let the program see the end of its input; a write that waits raises `ServiceEndedError`."""
        if self._channel is not None:
            self._channel.end_writing()
        self._streams.close_stdin()

    async def wait_ended(self) -> ProgramExit:
        """Wait until its tree is gone; what it wrote can still be read. Cancelling stops the waiting alone."""
        return await self._ending.wait_ended()

    async def end(self, grace: float = END_GRACE) -> ProgramExit:
        """Close stdin, wait `grace` seconds, then kill the tree and close stdout. Cancelling ends the grace at once.

        A read that waits gets what comes during the grace, and the end of the stream after it.
        """
        self.close_stdin()
        try:
            return await self._ending.kill_after(grace)
        finally:
            if self._channel is not None:
                self._channel.close()
            self._streams.close_stdout()
            self.closed = True


READ_SIZE = 64 * 1024
MOST_CELLS = 0xFFFF
NOTHING = Captured(b"")


class TerminalStreams:
    """A pty whose slave is all three streams of the program."""

    def __init__(self, size: TerminalSize) -> None:
        self.claimed = False
        """True once the program runs: its owner closes the master."""
        self.master, self._slave = os.openpty()
        try:
            os.set_blocking(self.master, False)
            set_size(self.master, size)
        except OSError:
            self.close()
            raise

    def child_ends(self) -> Streams:
        """The slave, three times."""
        return (self._slave, self._slave, self._slave)

    def start(self) -> None:
        """Close the slave: with the program's last copy the terminal ends."""
        self._close_slave()

    def fall_silent(self) -> None:
        """Do nothing: no progress is reported."""

    def capture(self) -> Captured:
        """Return no output: the owner reads it."""
        return NOTHING

    async def finish(self) -> Captured:
        """Close what has no owner; output that was not read yet stays readable."""
        self._close_slave()
        if not self.claimed:
            self.close()
        return NOTHING

    def close(self) -> None:
        """Close both ends."""
        self._close_slave()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def _close_slave(self) -> None:
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1


class PseudoTerminal:
    """A program with a terminal of its own."""

    def __init__(self, ending: EndingProgram, streams: TerminalStreams) -> None:
        self._ending = ending
        self._streams = streams
        self._readiness = Readiness()
        self._reading = asyncio.Lock()
        self._writing = asyncio.Lock()

    @property
    def pid(self) -> int:
        """Process id, as seen outside of a sandbox."""
        return self._ending.pid

    @property
    def closed(self) -> bool:
        """True once `end` has closed the terminal."""
        return self._readiness.closed

    async def read(self) -> bytes:
        """Output as it comes, at most `READ_SIZE` bytes; empty once no process has the terminal any more."""
        await asyncio.sleep(0)  # before the read, so that a cancel loses nothing: a flood must not hold the event loop
        async with self._reading:
            while not self._readiness.closed:
                try:
                    return os.read(self._streams.master, READ_SIZE)
                except BlockingIOError:
                    await self._readiness.readable(self._streams.master)
                except OSError:  # EIO: hung up
                    break
            return b""

    async def write(self, keys: bytes) -> None:
        """Type into the terminal; waits while the program does not read. A cancelled write may have typed a part.

        Raises:
            ServiceEndedError: the program is gone.
        """
        rest = memoryview(keys)
        async with self._writing:
            while rest:
                if self._readiness.closed:
                    raise ServiceEndedError("The program of this terminal has ended.")
                try:
                    rest = rest[os.write(self._streams.master, rest) :]
                except BlockingIOError:
                    await self._readiness.writable(self._streams.master)
                except OSError as error:
                    raise ServiceEndedError("The program of this terminal has ended.") from error

    def resize(self, size: TerminalSize) -> None:
        """Set another size; the program receives SIGWINCH. Nothing happens after its end."""
        if not self._readiness.closed:
            set_size(self._streams.master, size)

    async def wait_ended(self) -> ProgramExit:
        """Wait until its tree is gone; what it wrote can still be read. Cancelling stops the waiting alone."""
        return await self._ending.wait_ended()

    async def end(self, grace: float = 0) -> ProgramExit:
        """Wait `grace` seconds for its end, then kill the tree and close the terminal."""
        try:
            return await self._ending.kill_after(grace)
        finally:
            self._readiness.close()
            self._streams.close()


def set_size(terminal: int, size: TerminalSize) -> None:
    """Set the window size; a number outside of 1 to 65,535 counts as the nearest one."""
    rows, columns = (min(max(number, 1), MOST_CELLS) for number in (size.rows, size.columns))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


USUAL_LIMITS = ProgramLimits()
USUAL_SIZE = TerminalSize()


class SupervisedServices:
    """Starts programs below the supervisor of commands. Starts raise OSError."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._services: list[DuplexService] = []
        self._terminals: list[PseudoTerminal] = []

    async def open(self, command: ServiceCommand) -> DuplexService:
        """Start a service and return once it runs; call its `end` in any case, which closes its descriptors.

        Raises:
            OSError: it cannot be started, or its sandbox cannot be enforced.
        """
        running, streams = await self._supervision.start_with(_command_of(command), command.owner, ServiceStreams)
        streams.claimed = True
        service = DuplexService(EndingProgram(self._supervision, running), streams)
        self._forget_the_closed()
        self._services.append(service)
        return service

    async def open_terminal(self, command: ServiceCommand, size: TerminalSize = USUAL_SIZE) -> PseudoTerminal:
        """Start a program in a terminal of its own, as `open`; `TERM` is xterm-256color.

        Raises:
            OSError: it cannot be started, its sandbox cannot be enforced, or the system has no pty left.
        """
        planned = _command_of(command, terminal=True)
        running, streams = await self._supervision.start_with(planned, command.owner, lambda: TerminalStreams(size))
        streams.claimed = True
        terminal = PseudoTerminal(EndingProgram(self._supervision, running), streams)
        self._forget_the_closed()
        self._terminals.append(terminal)
        return terminal

    async def run_program(
        self, command: ServiceCommand, stdin: bytes | None = None, limits: ProgramLimits = USUAL_LIMITS
    ) -> ProgramResult:
        """Run a program to its end or its limit; stdin is /dev/null unless given. Cancelled, its tree is dead before
        this returns.

        Raises:
            OSError: it cannot be started, or its sandbox cannot be enforced.
        """
        return await run_to_end(self._supervision, _command_of(command), command.owner, stdin, limits)

    async def close(self) -> None:
        """End all of them at once."""
        self._forget_the_closed()
        await asyncio.gather(
            *(service.end(grace=0) for service in self._services),
            *(terminal.end(grace=0) for terminal in self._terminals),
        )
        self._forget_the_closed()

    def _forget_the_closed(self) -> None:
        self._services = [service for service in self._services if not service.closed]
        self._terminals = [terminal for terminal in self._terminals if not terminal.closed]


def _command_of(command: ServiceCommand, *, terminal: bool = False) -> Command:
    return Command(
        command.argv,
        command.working_dir,
        environment=command.environment,
        sandbox=command.sandbox,
        terminal=terminal,
        readable=command.readable,
        start_in=command.start_in,
        kept=command.kept,
    )
