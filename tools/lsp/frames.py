"""Messages of the Language Server Protocol over two descriptors: a head with the length, then a JSON object."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import Final

import msgspec

from tools.process.readiness import Readiness

MOST_HEAD: Final = 4_096
"""Bytes of a head; those of all known servers have under 100."""
MOST_BODY: Final = 4 * 1024 * 1024
"""Bytes of a message that is read; decoding so many takes 30 ms."""
MOST_WAITING: Final = 32 * 1024 * 1024
"""Bytes that wait for a server to read them."""
READ_SIZE: Final = 64 * 1024
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length"

_objects = msgspec.json.Decoder(dict[str, object])


class FrameError(Exception):
    """Raised for what is no message; the stream cannot be read any further. The text completes "it sent …"."""


class StalledError(Exception):
    """Raised when a server has stopped reading."""


class FrameChannel:
    """Reads and writes messages; the descriptors belong to the caller.

    Writing never waits: a task of the channel writes what is queued, whole messages in order.
    """

    def __init__(self, reader: int, writer: int) -> None:
        for descriptor in (reader, writer):
            os.set_blocking(descriptor, False)
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = Readiness(), Readiness()
        self._received = bytearray()
        self._queued: deque[bytes] = deque()
        self._waiting = 0
        self._writing: asyncio.Task[None] | None = None

    async def read(self) -> dict[str, object] | None:
        """The next message; None at the end of the stream. What is no JSON object is an empty message.

        Raises:
            FrameError: the bytes that came are no frame, so that nothing behind them can be read.
        """
        head = await self._up_to(_END)
        if head is None:
            return None
        body = await self._exactly(length_of(head))
        if body is None:
            return None
        try:
            return _objects.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}

    def send(self, message: object) -> None:
        """Queue a message.

        Raises:
            StalledError: the server has not read what was sent before.
        """
        body = msgspec.json.encode(message)
        if self._waiting + len(body) > MOST_WAITING:
            raise StalledError
        self._queued.append(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._waiting += len(self._queued[-1])
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    def close(self) -> None:
        """End what waits, before the owner closes the descriptors."""
        self._incoming.close()
        self._outgoing.close()
        if self._writing is not None:
            self._writing.cancel()

    async def _write(self) -> None:
        while self._queued and not self._outgoing.closed:
            rest = memoryview(self._queued[0])
            while rest and not self._outgoing.closed:
                try:
                    rest = rest[os.write(self._writer, rest) :]
                except BlockingIOError:
                    await self._outgoing.writable(self._writer)
                except OSError:
                    return  # it has ended, which the reader sees
            self._waiting -= len(self._queued.popleft())

    async def _up_to(self, end: bytes) -> bytes | None:
        while (place := self._received.find(end)) < 0:
            if len(self._received) > MOST_HEAD:
                raise FrameError("a head that does not end")
            if not await self._receive():
                return None
        if place > MOST_HEAD:
            raise FrameError("a head that does not end")
        head = bytes(memoryview(self._received)[:place])
        del self._received[: place + len(end)]
        return head

    async def _exactly(self, length: int) -> bytes | None:
        while len(self._received) < length:
            if not await self._receive():
                return None
        body = bytes(memoryview(self._received)[:length])
        del self._received[:length]
        return body

    async def _receive(self) -> bool:
        """Read more; False at the end."""
        while not self._incoming.closed:
            try:
                chunk = os.read(self._reader, READ_SIZE)
            except BlockingIOError:
                await self._incoming.readable(self._reader)
                continue
            except OSError:
                return False
            self._received += chunk
            await asyncio.sleep(0)  # a server that writes without a pause must not hold the event loop
            return bool(chunk)
        return False


def length_of(head: bytes) -> int:
    """The length that a head gives.

    Raises:
        FrameError: it gives none, two, or one above the limit.
    """
    found = [
        value.strip()
        for name, colon, value in (line.partition(b":") for line in head.split(b"\r\n"))
        if colon and name.strip().lower() == _LENGTH
    ]
    if len(found) != 1 or not found[0].isdigit():
        raise FrameError("a message without a length")
    if len(found[0]) > 9 or int(found[0]) > MOST_BODY:
        raise FrameError("a message that is too large")
    return int(found[0])
