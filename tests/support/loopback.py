"""A small HTTP server on loopback that answers from a script, records requests, and cuts streams."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from tests.support.waiting import PATIENCE

CERTIFICATE: Final = Path(__file__).with_name("loopback.pem")
"""Certificate of 127.0.0.1, with its key; no client trusts it."""
DEADLINE = PATIENCE
"""Seconds a test waits for something the server sees."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Number of its connection, counted from 1."""

    @property
    def json(self) -> dict[str, object]:
        """The body as a JSON object."""
        return msgspec.json.decode(self.body, type=dict[str, object])


@dataclass(slots=True)
class Talk:
    """The answering side of one request."""

    seen: Seen
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    keep: bool = True

    async def plain(self, status: int, body: bytes, headers: str = "") -> None:
        """A whole answer; `headers` are extra lines that each end in CRLF."""
        head = f"HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.writer.write(f"{head}{headers}\r\n".encode() + body)
        await self.writer.drain()

    async def begin(self, content_type: str = "text/event-stream", headers: str = "") -> None:
        """The head of a chunked answer; `headers` are extra lines that each end in CRLF."""
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n{headers}\r\n"
        self.writer.write(head.encode("latin-1"))
        await self.writer.drain()

    async def send(self, *pieces: bytes) -> None:
        """Each piece as one HTTP chunk."""
        for piece in pieces:
            self.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await self.writer.drain()

    async def end(self) -> None:
        """The proper end of a chunked answer."""
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def reset(self) -> None:
        """Drop the connection without a word."""
        self.keep = False
        self.writer.transport.abort()

    async def stall(self) -> None:
        """Say nothing more until the client is gone."""
        self.keep = False
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


Answer: TypeAlias = Callable[[Talk], Awaitable[None]]


@dataclass(slots=True)
class Loopback:
    """A running server: requests so far, connections so far, and an event per closed connection."""

    url: str
    requests: list[Seen] = field(default_factory=list[Seen])
    connections: int = 0
    open: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_closed(self) -> None:
        """Wait until no connection is open."""
        await self._until(lambda: self.open == 0)

    async def wait_asked(self) -> None:
        """Wait until a request has arrived."""
        await self._until(lambda: bool(self.requests))

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


@contextlib.asynccontextmanager
async def serve(*answers: Answer, secure: bool = False) -> AsyncGenerator[Loopback, None]:
    """Serve `answers` in turn, the last one again and again; `secure` by TLS, with the certificate beside this file."""
    loopback = Loopback("")
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        loopback.connections += 1
        loopback.open += 1
        number = loopback.connections
        try:
            while (seen := await _request(reader, number)) is not None:
                loopback.requests.append(seen)
                loopback.changed.set()
                talk = Talk(seen, reader, writer)
                await answers[min(len(loopback.requests), len(answers)) - 1](talk)
                if not talk.keep:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()  # closing would wait for a client that has stopped reading
        finally:
            writer.close()
            loopback.open -= 1
            loopback.changed.set()
            tasks.discard(task)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if secure else None
    if context is not None:
        context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=1 << 26, ssl=context)
    loopback.url = f"{'https' if secure else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield loopback
    finally:
        server.close()
        await asyncio.sleep(0)  # connections of this round of the loop have their task then
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # an aborted transport closes its socket in the next round


async def _request(reader: asyncio.StreamReader, connection: int) -> Seen | None:
    line = await reader.readline()
    if not line.strip():
        return None
    method, path, _ = line.decode("latin1").split(None, 2)
    headers: dict[str, str] = {}
    while (header := await reader.readline()).strip():
        name, _, value = header.decode("latin1").partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length") or 0))
    return Seen(method, path, headers, body, connection)
