"""Thread that writes stdout and stderr, so that a slow reader delays only the output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 32 << 20
"""Bytes that may wait: as much as a very long run prints with all its pieces."""
AT_ONCE: Final = 1 << 16
"""Bytes of one system call: the capacity of a pipe."""
LOOK: Final = 0.25
"""Seconds that the wait for a reader may outlast its end."""


class OutputFull(OSError):
    """Raised when the queue is full: the reader has stopped."""


class OutputThread:
    """Takes text at once; a daemon thread hands it on, in order, as fast as it is read."""

    def __init__(self, lost: Callable[[], object], stdout: int = 1, at_once: int = AT_ONCE) -> None:
        """`lost` is called by the thread once stdout takes nothing more; the next `write` raises why.

        `at_once`: bytes of one system call; what is under way when the queue is dropped is still written.
        """
        self._lost = lost
        self._stdout = stdout
        self._at_once = at_once
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._errors: dict[int, OSError] = {}
        self._is_closed = False
        self._drops = False
        """True when the rest of the write under way is dropped."""
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)
        self._thread.start()

    def write(self, number: int, content: bytes) -> None:
        """Have `content` written to this file descriptor; for one that is lost it is dropped.

        Raises:
            OSError: stdout is lost, or `MOST` waits (`OutputFull`).
        """
        with self._changed:
            if number == self._stdout and (error := self._errors.get(number)) is not None:
                raise error
            if number in self._errors:
                return
            if self._size + len(content) > MOST:
                raise OutputFull(0, f"{MOST >> 20} MB wait and nobody reads them")
            self._waiting.append((number, content))
            self._size += len(content)
            self._changed.notify_all()

    def drop(self) -> None:
        """Drop everything that is not written yet; what is written from now on follows at once."""
        with self._changed:
            self._size -= sum(len(content) for _, content in self._waiting)
            self._waiting.clear()
            self._drops = True

    @property
    def waits(self) -> int:
        return self._size

    async def drain(self) -> None:
        """Wait until everything is written; cancelling it leaves the rest unwritten.

        Raises:
            OSError: stdout was lost before that.
        """
        while not await asyncio.to_thread(self._wait_until_drained, LOOK):
            pass
        if (error := self._errors.get(self._stdout)) is not None:
            raise error

    def finish(self, seconds: float) -> None:
        """Close it and wait at most `seconds` for the queue."""
        self.close()
        self._wait_until_drained(seconds)

    def close(self) -> None:
        """Accept no more text; queued text is written if it is read before the process ends."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _wait_until_drained(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._size, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                number, content = self._waiting.popleft()
                self._drops = False
            self._hand_on(number, content)
            with self._changed:
                self._size -= len(content)
                self._changed.notify_all()

    def _hand_on(self, number: int, content: bytes) -> None:
        if number in self._errors:
            return
        try:
            write_all(number, content, self._at_once, lambda: self._drops)
        except OSError as error:
            self._errors[number] = error
            if number == self._stdout:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    self._lost()


def write_all(
    number: int, content: bytes, at_once: int = AT_ONCE, is_dropped: Callable[[], bool] = lambda: False
) -> None:
    """Write all of it, waiting where the descriptor would block, as pipes of other programs may.

    `is_dropped` is asked between two system calls of `at_once` bytes; once it is true the rest is not written.

    Raises:
        OSError: it takes nothing more.
    """
    view = memoryview(content)
    while view and not is_dropped():
        try:
            view = view[os.write(number, view[:at_once]) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(number, select.POLLOUT)
            poll.poll()
