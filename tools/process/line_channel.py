"""JSON objects, one a line, over two descriptors: bounded in memory, with the back-pressure of the pipes."""

from __future__ import annotations

import asyncio
import os

import msgspec

from tools.clean import clean
from tools.process.output import Readiness
from tools.services import InvalidLineError, LineTooLongError, ServiceEndedError

LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one line, its end not counted."""
READ_SIZE = 64 * 1024
SHOWN = 200
"""Characters of an invalid line in the message about it."""
ENDED = "The program has ended or no longer reads its input."

_objects = msgspec.json.Decoder(dict[str, object])


class LineChannel:
    """Reads lines from one descriptor and writes lines to another, neither of which it owns.

    It holds at most one line and `READ_SIZE` bytes in each direction. Reads and writes of several tasks take turns.
    Cancelling a read loses nothing; cancelling a write either writes nothing or the whole line.
    """

    def __init__(self, reader: int, writer: int, limit: int = LINE_LIMIT) -> None:
        for descriptor in (reader, writer):
            os.set_blocking(descriptor, False)
        self._reader = reader
        self._writer = writer
        self._limit = limit
        self._incoming = Readiness()
        self._outgoing = Readiness()
        self._reading = asyncio.Lock()
        self._received = bytearray()
        self._searched = 0
        """Bytes of `_received` that hold no line end."""
        self._passing_over = False
        """True while the rest of a line that was too long is to come."""
        self._at_end = False
        self._writing = asyncio.Lock()
        self._unwritten = memoryview(b"")
        self._finishing: asyncio.Task[None] | None = None

    async def read_object(self) -> dict[str, object] | None:
        """The next object; None at the end of the stream. Blank lines are passed over.

        Raises:
            LineTooLongError: the line exceeds the limit; the next call continues behind it.
            InvalidLineError: the line is no JSON object; the next call continues behind it.
        """
        while (line := await self.read_line()) is not None:
            if line.strip():
                try:
                    return _objects.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    shown = clean(line[: 4 * SHOWN].decode("utf-8", "replace"))[:SHOWN]
                    raise InvalidLineError(f"The program sent a line that is no JSON object: {shown}") from error
        return None

    async def write_object(self, value: object) -> None:
        """Write one object as a line.

        Raises:
            ValueError: it holds what no JSON text can, a lone surrogate.
            LineTooLongError, ServiceEndedError: as `write_line`.
        """
        await self.write_line(msgspec.json.encode(value))

    async def read_line(self) -> bytes | None:
        """The next line without its end; None at the end of the stream, or once the channel is closed.

        Raises:
            LineTooLongError: the line exceeds the limit; the next call continues behind it.
        """
        async with self._reading:
            while not self._incoming.closed:
                line = self._next_line()
                if line is not None:
                    return line
                if self._at_end:
                    return None
                await self._receive()
            return None

    async def write_line(self, line: bytes) -> None:
        """Write one line; waits while the other side does not read.

        Raises:
            ValueError: it holds a line end.
            LineTooLongError: it exceeds the limit; nothing was written.
            ServiceEndedError: the other side does not read any more.
        """
        if b"\n" in line:
            raise ValueError("a line holds no line end")
        if len(line) > self._limit:
            raise LineTooLongError(f"A line of {len(line)} bytes is above the limit of {self._limit} bytes.")
        await self._writing.acquire()
        self._unwritten = memoryview(line + b"\n")
        whole = len(self._unwritten)
        try:
            await self._write_rest()
        except asyncio.CancelledError:
            if self._unwritten and len(self._unwritten) < whole:
                self._finishing = asyncio.create_task(self._finish())
            raise
        finally:
            if self._finishing is None:
                self._unwritten = memoryview(b"")
                self._writing.release()

    def end_writing(self) -> None:
        """End writes that wait, before the owner closes the descriptor that is written to."""
        self._outgoing.close()

    def close(self) -> None:
        """End reads and writes that wait, before the owner closes the descriptors."""
        self._incoming.close()
        self._outgoing.close()

    def _next_line(self) -> bytes | None:
        """A line that has arrived; None where more must be read."""
        end = self._received.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._received)
            if self._passing_over:
                self._drop(len(self._received))
            elif len(self._received) > self._limit:
                self._passing_over = True
                self._drop(len(self._received))
                raise self._too_long()
            elif self._at_end and self._received:
                return self._take(len(self._received), 0)
            return None
        if self._passing_over:
            self._passing_over = False
            self._drop(end + 1)
            return self._next_line()
        if end > self._limit:
            self._drop(end + 1)
            raise self._too_long()
        return self._take(end, 1)

    def _take(self, length: int, ending: int) -> bytes:
        line = bytes(memoryview(self._received)[:length])
        self._drop(length + ending)
        return line

    def _drop(self, length: int) -> None:
        del self._received[:length]
        self._searched = 0

    def _too_long(self) -> LineTooLongError:
        return LineTooLongError(f"The program sent a line above the limit of {self._limit} bytes.")

    async def _receive(self) -> None:
        try:
            chunk = os.read(self._reader, READ_SIZE)
        except BlockingIOError:
            await self._incoming.readable(self._reader)
            return
        except OSError:
            chunk = b""
        self._at_end = not chunk
        self._received += chunk
        await asyncio.sleep(0)  # a program that writes without a pause must not hold the event loop

    async def _write_rest(self) -> None:
        while self._unwritten:
            if self._outgoing.closed:
                raise ServiceEndedError(ENDED)
            try:
                written = os.write(self._writer, self._unwritten)
            except BlockingIOError:
                await self._outgoing.writable(self._writer)
            except OSError as error:
                raise ServiceEndedError(ENDED) from error
            else:
                self._unwritten = self._unwritten[written:]

    async def _finish(self) -> None:
        """Write the rest of a line whose writer was cancelled: half a line would spoil the next."""
        try:
            await self._write_rest()
        except ServiceEndedError:
            pass
        finally:
            self._finishing = None
            self._unwritten = memoryview(b"")
            self._writing.release()
