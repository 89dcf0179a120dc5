"""A helper of Phoenix itself that stays: asked over pipes, bounded in time, replaced when it dies."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, Final, cast
from weakref import WeakSet

ENVIRONMENT: Final = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
"""Environment without anything of the user's: no key, no path to a module."""
READ_AT_ONCE: Final = 64 * 1024
MOST_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of one answer; an answer about 100,000 characters takes at most 2 million."""


class HelperFailed(Exception):
    """The helper died, or took too long and was killed; `lines` of the answer came before that."""

    def __init__(self, reason: str, lines: Sequence[bytes] = ()) -> None:
        super().__init__(reason)
        self.lines = list(lines)


_helpers: Final[WeakSet[Helper]] = WeakSet()


def close_helpers() -> None:
    """Kill all of them, so that no thread waits for one while Phoenix ends."""
    for helper in list(_helpers):
        helper.close()


class Helper:
    """One process, started with the first request. Blocks: call it from a thread; threads wait for each other."""

    def __init__(self, argv: Sequence[str], *, timeout: float, stays: bool = False) -> None:
        """Start nothing yet; one that `stays` is not killed by `close_helpers`, and ends as its pipe closes."""
        self._argv = tuple(argv)
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        if not stays:
            _helpers.add(self)

    def ask(self, request: bytes, last: bytes) -> list[bytes]:
        """The lines of the answer, up to the line `last`.

        Raises:
            HelperFailed: there is no answer within `timeout` seconds, or the process ended.
        """
        lines: list[bytes] = []
        with self._lock:
            try:
                lines.extend(self._answer(request, last))
            except (OSError, ValueError, HelperFailed) as error:
                self._end()
                raise HelperFailed(str(error), lines) from error
        return lines

    @property
    def pid(self) -> int:
        """The process that runs; 0 for none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else 0

    def close(self) -> None:
        """Kill it; its callers get a `HelperFailed`, and the next request starts another."""
        process = self._process
        if process is not None:
            process.kill()
        if self._lock.acquire(blocking=False):  # otherwise the thread that waits for an answer cleans up
            try:
                self._end()
            finally:
                self._lock.release()

    def _answer(self, request: bytes, last: bytes) -> Iterator[bytes]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None, "both are pipes"
        until = time.monotonic() + self._timeout
        written, received, rest = 0, 0, b""
        reading, writing = process.stdout.fileno(), process.stdin.fileno()
        while True:
            left = until - time.monotonic()
            wants = [writing] if written < len(request) else []
            readable, writable, _ = select.select([reading], wants, [], max(left, 0))
            if left <= 0 or not (readable or writable):
                raise HelperFailed("no answer in time")
            if writable:
                written += os.write(writing, request[written : written + select.PIPE_BUF])
            if readable:
                piece = os.read(reading, READ_AT_ONCE)
                if not piece:
                    raise HelperFailed("it ended")
                received += len(piece)
                if received > MOST_ANSWER:
                    raise HelperFailed("it sent too much")
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line == last:
                        return
                    yield line

    def _running(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            # Its own session: no signal of the terminal reaches it.
            process = self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,
            )
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def limit_texts(given: Any, most: int) -> Any:
    """The first texts, or texts by their path, that have at most `most` bytes in an answer."""
    texts = cast("dict[str, str]", given if isinstance(given, dict) else dict.fromkeys(given, ""))
    sizes = [*accumulate(6 * (len(name) + len(text)) for name, text in texts.items())]
    few = dict([*texts.items()][: bisect_right(sizes, most)])
    return few if isinstance(given, dict) else [*few]
