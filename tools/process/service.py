"""Services: programs that Phoenix talks with over stdin and stdout, below the supervisor of commands."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Self

from tools.contract import Captured
from tools.process.drain import Drain
from tools.process.line_channel import LINE_LIMIT, LineChannel
from tools.process.supervision import Running, Supervision
from tools.process.waiting import to_the_end
from tools.process.zygote.wire import Streams
from tools.services import ProgramExit, ServiceEndedError

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

    def captured(self) -> Captured:
        """The end of stderr so far."""
        return self._stderr.captured()

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

    async def ended(self) -> ProgramExit:
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
        finished = execution.finished(stderr, timed_out=False)
        return ProgramExit(
            finished.exit_code, finished.signal, finished.duration, stderr, finished.leftovers, finished.survivors
        )


class DuplexService:
    """Implements `engine.ports.services.RunningService`."""

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
        return self._streams.captured()

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

    async def ended(self) -> ProgramExit:
        """Wait until its tree is gone; what it wrote can still be read. Cancelling stops the waiting alone."""
        return await self._ending.ended()

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
