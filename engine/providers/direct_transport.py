"""HTTP/1.1 straight to a server, over asyncio and h11.

httpx2 does this as well, for 5 MB and 140 ms of processor time until its first request is out, both of which every
start of Phoenix would pay. What is not straight goes over it still (`by_httpx`): proxies, credentials in an address,
certificates that another system keeps.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from urllib.parse import SplitResult, urlsplit

import h11

from engine.providers.bounds import MOST_SKIPPED, Unpacker
from engine.providers.connection import HttpConnection, connect
from engine.providers.http_transport import MOST_KEPT, HungUp, ReadTimeout, TransportError, Unsendable, header_lines


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
            for piece in unpacker.pieces(bytes(event.data)):
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
        rested = self._rested()
        line = rested or await connect(self._base)
        try:
            head = await self._asked(line, request, body)
            if head is None and rested is not None:  # it was closing while idle: no wait is needed
                line.drop()
                line = await connect(self._base)
                head = await self._asked(line, request, body)
            if head is None:
                raise TransportError("the server closed the connection without an answer")
            yield DirectResponse(line, head, self._patience)
        finally:
            self._put_down(line)

    async def _asked(self, line: HttpConnection, request: h11.Request, body: bytes) -> h11.Response | None:
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

    def _rested(self) -> HttpConnection | None:
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
