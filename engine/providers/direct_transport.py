"""HTTP/1.1 straight to a server, over asyncio and h11: one connection and its state, and the transport."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Final
from urllib.parse import SplitResult, urlsplit

import h11

from engine.providers.http_transport import (
    CONNECT_TIMEOUT,
    KEEPALIVE,
    MOST_KEPT,
    MOST_SKIPPED,
    ConnectTimeout,
    HungUp,
    Misconfigured,
    ReadTimeout,
    TransportError,
    Unpacker,
    Unsendable,
    header_lines,
    tls_failure,
)
from tools.web.surroundings import without_connections

PIECE: Final = 64 * 1024
LONGEST_HEAD: Final = 100 * 1024
SECOND_ADDRESS: Final = 0.25
"""Seconds until the next address of a host is tried beside the first (RFC 8305)."""
CERTIFICATES: Final = (
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Certificate files of Linux systems, for an interpreter that was built for another one."""
_HASHED: Final = re.compile(r"[0-9a-f]{8}\.\d")


@cache
def tls_context() -> ssl.SSLContext:
    """The one TLS context of the process; making it takes about 20 ms, so it is made off the loop."""
    paths = ssl.get_default_verify_paths()  # SSL_CERT_FILE and SSL_CERT_DIR count
    folder = Path(paths.capath or os.devnull)
    hashed = folder.is_dir() and any(_HASHED.fullmatch(each.name) for each in folder.iterdir())
    found = None if paths.cafile or hashed else next(filter(os.path.isfile, CERTIFICATES), None)
    return ssl.create_default_context(cafile=found)


class _Watched(asyncio.StreamReaderProtocol):
    """Detects a stale idle connection; buffered data stays readable after EOF."""

    resting = False
    spoilt = False
    lost: Exception | None = None

    def data_received(self, data: bytes) -> None:
        self.spoilt |= self.resting
        super().data_received(data)

    def eof_received(self) -> bool | None:
        self.spoilt = True  # many servers close after an answer, often before all of it was read
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.spoilt, self.lost = True, exc
        super().connection_lost(None)


class HttpConnection:
    """One connection, and its state of HTTP/1.1."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: _Watched) -> None:
        self._reader, self._writer, self._protocol = reader, writer, protocol
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        self._rested_at = 0.0
        self._heard = False
        """True once part of the answer to the newest request has arrived."""

    async def send(self, request: h11.Request, body: bytes, patience: float) -> None:
        """Send all of a request, or the part that the server accepts: its answer gives the reason."""
        self._heard = False
        events = (request, h11.Data(data=body), h11.EndOfMessage())
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        try:
            async with asyncio.timeout(patience):
                await self._writer.drain()
        except TimeoutError:
            raise TransportError(f"the request could not be sent within {patience:g} s") from None
        except ConnectionError:
            return

    async def event(self, patience: float) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Read the next event of the server, waiting at most `patience` seconds for all of it.

        A part of a body is one at once, but heads, lengths of chunks and trailers come whole: bytes that drip prolong
        no wait.
        """
        try:
            async with asyncio.timeout(patience):
                return await self._event()
        except TimeoutError:
            raise ReadTimeout from None

    async def _event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            while True:
                event = self._http.next_event()
                if event is not h11.NEED_DATA:
                    return event
                received = await self._reader.read(PIECE)
                if not received and self._http.their_state is h11.SEND_RESPONSE:
                    if not self._heard:
                        raise HungUp
                    raise TransportError(str(self._protocol.lost or "the answer was cut off"))
                self._heard = True
                self._http.receive_data(received)
        except h11.RemoteProtocolError as error:
            raise TransportError(str(self._protocol.lost or error)) from None

    def rest(self) -> bool:
        """Get ready for another request; False where nothing more can be asked over this connection."""
        states = {self._http.our_state, self._http.their_state}
        if self._protocol.spoilt or states not in ({h11.DONE}, {h11.IDLE}):
            return False
        if states == {h11.DONE}:
            self._http.start_next_cycle()
        self._protocol.resting, self._rested_at = True, monotonic()
        return True

    def wake(self) -> bool:
        """Take the connection out of rest; returns True when it is still usable."""
        self._protocol.resting = False
        return not self._protocol.spoilt and monotonic() - self._rested_at < KEEPALIVE

    def drop(self) -> None:
        """End it at once: the server may still be sending."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """End it, and wait until it has ended."""
        self.drop()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def connect(address: SplitResult) -> HttpConnection:
    """A connection to the server at `address`.

    Raises:
        CarrierError: none came about.
    """
    secure = address.scheme == "https"
    host, port = address.hostname or "", address.port or (443 if secure else 80)
    try:
        context = await asyncio.to_thread(tls_context) if secure else None
    except OSError as error:  # of a variable such as SSLKEYLOGFILE
        raise Misconfigured(without_connections(error, os.environ)) from None
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=PIECE, loop=loop)
    protocol = _Watched(reader, loop=loop)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            transport, _ = await loop.create_connection(
                lambda: protocol, host, port, ssl=context, happy_eyeballs_delay=SECOND_ADDRESS
            )
    except TimeoutError:
        raise ConnectTimeout from None
    except ssl.SSLError as error:
        raise tls_failure(error, f"{host}:{port}") from None
    except OSError as error:
        raise TransportError(str(error)) from None
    return HttpConnection(reader, asyncio.StreamWriter(transport, protocol, reader, loop), protocol)


class DirectResponse:
    """Implements `Answer`."""

    def __init__(self, line: HttpConnection, head: h11.Response, patience: float) -> None:
        self._line = line
        self._patience = patience
        self.status = head.status_code
        self.headers: Mapping[str, str] = {name.decode(): value.decode("latin-1") for name, value in head.headers}

    async def pieces(self) -> AsyncIterator[bytes]:
        """See `Answer.pieces`."""
        unpacker = Unpacker(self.headers.get("content-encoding", ""))
        while isinstance(event := await self._line.event(self._patience), h11.Data):
            for piece in unpacker.pieces(event.data):
                yield piece


class DirectTransport:
    """Implements `HttpTransport`."""

    def __init__(self, base_url: str, idle_timeout: float) -> None:
        self._base = urlsplit(base_url)
        self._patience = idle_timeout
        self._resting: list[HttpConnection] = []

    @contextlib.asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[DirectResponse]:
        """See `HttpTransport.ask`."""
        request = _request(method, urlsplit(url), headers, len(body))
        rested = self._take_rested()
        line = rested or await connect(self._base)
        try:
            head = await self._ask_on(line, request, body)
            if head is None and rested is not None:  # it was closing while idle: no wait is needed
                line.drop()
                line = await connect(self._base)
                head = await self._ask_on(line, request, body)
            if head is None:
                raise TransportError("the server closed the connection without an answer")
            yield DirectResponse(line, head, self._patience)
        finally:
            self._put_down(line)

    async def _ask_on(self, line: HttpConnection, request: h11.Request, body: bytes) -> h11.Response | None:
        """The head of the answer; None where the connection ended without a byte of it."""
        await line.send(request, body, self._patience)
        try:
            head = await _head(line, self._patience)
        except HungUp:
            return None
        if not isinstance(head, h11.Response):
            raise TransportError("the server answered in an unknown protocol")
        return head

    async def warm(self) -> None:
        """See `HttpTransport.warm`."""
        self._put_down(await connect(self._base))

    async def close(self) -> None:
        """See `HttpTransport.close`."""
        lines, self._resting = self._resting, []
        for line in lines:
            await line.close()

    def _take_rested(self) -> HttpConnection | None:
        while self._resting:
            line = self._resting.pop()
            if line.wake():
                return line
            line.drop()
        return None

    def _put_down(self, line: HttpConnection) -> None:
        if len(self._resting) < MOST_KEPT and line.rest():
            self._resting.append(line)
        else:
            line.drop()


def _request(method: str, url: SplitResult, headers: Mapping[str, str], length: int) -> h11.Request:
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    own = {"host": url.netloc, "accept": "*/*", "accept-encoding": "identity", "content-length": str(length)}
    lines = header_lines(own | dict(headers))
    try:
        return h11.Request(method=method, target=target, headers=lines)
    except h11.LocalProtocolError:  # its text quotes the header, which may be the key
        raise Unsendable from None


async def _head(line: HttpConnection, patience: float) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
    """The head of the answer; one that trickles in is held to the same patience as one that does not come."""
    try:
        async with asyncio.timeout(patience):
            for _ in range(MOST_SKIPPED):
                head = await line.event(patience)
                if not isinstance(head, h11.InformationalResponse):
                    return head
    except TimeoutError:
        raise ReadTimeout from None
    raise TransportError("the server sent interim responses without end")
