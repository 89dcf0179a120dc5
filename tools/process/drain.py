"""One output of a program, read whatever comes and kept in part, so that the program never waits for a reader."""

from __future__ import annotations

import asyncio
import os

from tools.contract import Captured
from tools.process.capture import HeadAndTail
from tools.process.output import DRAIN_LIMIT, READ_BUDGET, READ_SIZE, REPORT_INTERVAL


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

    def captured(self) -> Captured:
        """The kept parts so far, and the count of what was dropped."""
        return self._kept.captured()

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
        return self.captured()

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
