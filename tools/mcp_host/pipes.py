"""The two descriptors of a server as lines: non-blocking, a line has a limit, one writer waits while a pipe is full."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from tools.mcp_host.limits import LONGEST_SERVER_LINE

CHUNK = 256 * 1024


class LineTooLong(Exception):
    """A line beyond the limit: its end may never come."""


class LinePipe:
    """Owns `reading` and `writing`, and closes both.

    Raises:
        OSError: they are no pipes or sockets.
    """

    def __init__(self, reading: int, writing: int, longest: int = LONGEST_SERVER_LINE) -> None:
        self._loop = asyncio.get_running_loop()
        self._reading, self._writing = reading, writing
        self._longest = longest
        self._closed = False
        for descriptor in (reading, writing):
            os.set_blocking(descriptor, False)

    async def lines(self) -> AsyncIterator[bytes]:
        """Each line without its end; ends with the output of the server.

        Raises:
            LineTooLong: no end of a line within the limit.
            OSError: the descriptor cannot be read.
        """
        rest = bytearray()
        while chunk := await self._chunk():
            start = 0
            while (end := chunk.find(b"\n", start)) >= 0:
                rest += memoryview(chunk)[start:end]
                line, rest, start = bytes(rest), bytearray(), end + 1
                if len(line) > self._longest:
                    raise LineTooLong
                yield line
            rest += memoryview(chunk)[start:]
            if len(rest) > self._longest:
                raise LineTooLong

    async def write(self, data: bytes) -> None:
        """Write all of it, waiting while the server does not read.

        Raises:
            OSError: the server closed its input.
        """
        view = memoryview(data)
        while view:
            if self._closed:
                raise BrokenPipeError("closed")
            try:
                view = view[os.write(self._writing, view) :]
            except BlockingIOError:
                await self._ready(self._writing, self._loop.add_writer, self._loop.remove_writer)

    def close(self) -> None:
        """Close both descriptors: a server sees the end of its input."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._reading)
        self._loop.remove_writer(self._writing)
        for descriptor in {self._reading, self._writing}:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    async def _chunk(self) -> bytes:
        while not self._closed:
            try:
                return os.read(self._reading, CHUNK)
            except BlockingIOError:
                await self._ready(self._reading, self._loop.add_reader, self._loop.remove_reader)
        return b""

    async def _ready(self, descriptor: int, add: Callable[..., object], remove: Callable[[int], object]) -> None:
        ready = self._loop.create_future()
        add(descriptor, _set, ready)
        try:
            await ready
        finally:
            if not self._closed:
                remove(descriptor)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
