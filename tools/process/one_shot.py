"""One-shot programs: input in, stdout and stderr apart and bounded, the tree gone at the end."""

from __future__ import annotations

import asyncio
import os

from tools.contract import Captured, Command
from tools.process.output import DRAIN_LIMIT, READ_BUDGET, READ_SIZE, REPORT_INTERVAL, HeadAndTail, content_as_file
from tools.process.supervision import Supervision
from tools.process.zygote.wire import Streams
from tools.services import ProgramLimits, ProgramResult


class Drain:
    """A pipe that is read through the event loop, at most `READ_BUDGET` bytes between two pauses."""

    def __init__(self, keep_head: int, keep_tail: int) -> None:
        self._reader, self.child_end = os.pipe()
        os.set_blocking(self._reader, False)
        self._kept = HeadAndTail(keep_head, keep_tail)
        self._budget = READ_BUDGET
        self._pause: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Close the child's end and begin to read."""
        self._close_child_end()
        self._resume()

    def capture(self) -> Captured:
        """The kept parts so far, and the count of what was dropped."""
        return self._kept.capture()

    def finish(self) -> Captured:
        """Read what the dead have left in the pipe, and close both ends."""
        self._close_child_end()
        if self._reader >= 0:
            self._stop_reading()
            drained = 0
            while drained < DRAIN_LIMIT and (chunk := self._chunk()):
                drained += len(chunk)
            os.close(self._reader)
            self._reader = -1
        return self.capture()

    def _resume(self) -> None:
        self._pause, self._budget = None, READ_BUDGET
        asyncio.get_running_loop().add_reader(self._reader, self._read)

    def _read(self) -> None:
        chunk = self._chunk()
        if chunk is None:
            return
        self._budget -= len(chunk)
        if not chunk:
            self._stop_reading()
        elif self._budget <= 0:
            self._stop_reading()
            self._pause = asyncio.get_running_loop().call_later(REPORT_INTERVAL, self._resume)

    def _chunk(self) -> bytes | None:
        """The next bytes; empty at the end, None while there are none."""
        try:
            chunk = os.read(self._reader, READ_SIZE)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        self._kept.feed(chunk)
        return chunk

    def _stop_reading(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        asyncio.get_running_loop().remove_reader(self._reader)

    def _close_child_end(self) -> None:
        if self.child_end >= 0:
            os.close(self.child_end)
            self.child_end = -1


class CollectedStreams:
    """Stdin from a file, so that no program has to read it; the beginnings of stdout and stderr."""

    def __init__(self, stdin: bytes | None, keep: int) -> None:
        self._child_stdin = content_as_file(stdin)
        self._outputs: list[Drain] = []
        try:
            for _ in range(2):
                self._outputs.append(Drain(keep, 0))
        except OSError:
            self._close()
            raise

    def child_ends(self) -> Streams:
        """A file and two pipes."""
        stdout, stderr = self._outputs
        return (self._child_stdin, stdout.child_end, stderr.child_end)

    def start(self) -> None:
        """Close the child's ends and begin to read."""
        self._close_stdin()
        for output in self._outputs:
            output.start()

    def fall_silent(self) -> None:
        """Do nothing: no progress is reported."""

    def capture(self) -> Captured:
        """The beginning of stdout so far."""
        return self._outputs[0].capture()

    def errors(self) -> Captured:
        """The beginning of stderr so far."""
        return self._outputs[1].capture()

    async def finish(self) -> Captured:
        """Collect the rest of both and close everything."""
        self._close()
        return self.capture()

    def _close(self) -> None:
        self._close_stdin()
        for output in self._outputs:
            output.finish()

    def _close_stdin(self) -> None:
        if self._child_stdin >= 0:
            os.close(self._child_stdin)
            self._child_stdin = -1


async def run_to_end(
    supervision: Supervision, command: Command, owner: str, stdin: bytes | None, limits: ProgramLimits
) -> ProgramResult:
    """Run a program to its end or its limit. Cancelled, its tree is dead before this returns.

    Raises:
        OSError: it cannot be started, or its sandbox cannot be enforced.
    """
    running, streams = await supervision.start_with(command, owner, lambda: CollectedStreams(stdin, limits.output))
    finished = await supervision.see_through(running, limits.seconds, asyncio.Event())
    assert finished is not None, "nobody else has the event"
    refused = await supervision.refusals(running, streams.errors(), finished.captured) if finished.exit_code else ""
    return ProgramResult(
        finished.exit_code,
        finished.signal,
        finished.timed_out,
        finished.captured,
        streams.errors(),
        finished.duration,
        finished.leftovers,
        finished.survivors,
        refused,
    )
