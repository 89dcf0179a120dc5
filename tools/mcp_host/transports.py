"""Transports of servers: pipes of a program and HTTP, both bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final
from urllib.request import getproxies_environment, proxy_bypass

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from tools.mcp_host.guard import GuardedReader, GuardedWriter, Streams, TooManyValues, Traffic, ValueCount
from tools.mcp_host.protocol import LONGEST_SERVER_LINE, Connect, is_loopback

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


_AT_START: Final = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"')
_AT_END: Final = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*\}\s*\Z')
LOOKED_AT = 200
"""Bytes at either end of an unreadable message in which its id is looked for."""


@asynccontextmanager
async def stdio_transport(pipe: LinePipe, traffic: Traffic) -> AsyncGenerator[Streams]:
    """Streams for a client; the pipe is closed at the end, which a server sees as the end of its input."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with to_session, from_server, to_server, from_session, anyio.create_task_group() as group:
        group.start_soon(_read, pipe, to_session, traffic)
        group.start_soon(_write, pipe, from_session, traffic)
        try:
            yield GuardedReader(from_server, traffic), GuardedWriter(to_server, traffic)
        finally:
            pipe.close()
            group.cancel_scope.cancel()


async def _read(
    pipe: LinePipe, to_session: MemoryObjectSendStream[SessionMessage | Exception], traffic: Traffic
) -> None:
    async with to_session:  # closed last, so that the session finds the cause of its end
        try:
            async for line in pipe.lines():
                traffic.note()
                if line.strip():
                    await to_session.send(_message(line))
        except LineTooLong:
            traffic.end(f"it sent a line of more than {LONGEST_SERVER_LINE >> 20} MB")
        except OSError as error:
            traffic.end(f"its output could not be read: {error.strerror}")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the session ended first
        traffic.end("it closed its output")


def _message(line: bytes) -> SessionMessage | Exception:
    """A message, or the error: an unreadable answer becomes an error answer, so that its call does not wait in vain."""
    try:
        ValueCount().add(line)
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError) as error:
        match = _AT_START.match(line[:LOOKED_AT]) or _AT_END.search(line[-LOOKED_AT:])
        if match is None:
            return error
        reason = ErrorData(code=PARSE_ERROR, message=f"an answer that cannot be read: {_first_line(error)}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(match[1]), error=reason))


def _first_line(error: Exception) -> str:
    detail = [line.strip() for line in str(error).splitlines()]
    return next((line for line in detail if "Invalid JSON" in line or "values" in line), detail[0] if detail else "")[
        :200
    ]


async def _write(pipe: LinePipe, from_session: MemoryObjectReceiveStream[SessionMessage], traffic: Traffic) -> None:
    try:
        async with from_session:
            async for item in from_session:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await pipe.write(line.encode("utf-8", "replace") + b"\n")
    except OSError:
        traffic.end("it closed its input")


TIMEOUT = httpx2.Timeout(30.0, read=900.0)
"""Seconds; a stream may be silent for longer than any call, whose own limits end it earlier."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_HEADER_VALUE: Final = re.compile(r"[\t -~]{0,16384}")
UNAUTHORIZED = 401
REFUSED = frozenset({UNAUTHORIZED, 403})


class NotAllowed(httpx2.RequestError):
    """A request that would leave the origin of the server in plain text."""


class Refusals:
    """The last refusal (401 or 403) of the server itself; 0 if none."""

    def __init__(self) -> None:
        self.status = 0
        self.wants_sign_in = False
        """True once a request of this connection was answered with 401."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """The real transport with limits on what it gives."""

    def __init__(self, server: httpx2.URL, refusals: Refusals, traffic: Traffic) -> None:
        self._inner: dict[str, httpx2.AsyncHTTPTransport] = {}
        """Transports by the address of their proxy; empty: none."""
        self._server, self._refusals, self._traffic = server, refusals, traffic

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; only its head is waited for."""
        own = _origin(request.url) == _origin(self._server)
        if not own and not self._may_ask(request.url):
            raise NotAllowed(f"a request to {request.url.host} without TLS was refused", request=request)
        request.headers["accept-encoding"] = "identity"
        response = await self._way(request.url).handle_async_request(request)
        self._traffic.note()
        if own:
            self._refusals.status = response.status_code if response.status_code in REFUSED else 0
            self._refusals.wants_sign_in |= response.status_code == UNAUTHORIZED
        if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
            await response.aclose()
            raise httpx2.DecodingError("the server compressed an answer although it was not asked to", request=request)
        kind = response.headers.get("content-type", "").lower()
        if isinstance(response.stream, httpx2.AsyncByteStream):
            counted = not kind.startswith("text/event-stream")
            response.stream = BoundedStream(response.stream, self._traffic, counted=counted)
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        for inner in self._inner.values():
            await inner.aclose()

    def _way(self, url: httpx2.URL) -> httpx2.AsyncHTTPTransport:
        """The transport for an address: through the proxy that the environment names, as programs expect."""
        proxies = getproxies_environment()
        proxy = "" if is_loopback(url.host) or proxy_bypass(url.host) else proxies.get(url.scheme, "")
        if proxy not in self._inner:
            limits = httpx2.Limits(max_connections=64)
            self._inner[proxy] = httpx2.AsyncHTTPTransport(limits=limits, proxy=proxy or None)
        return self._inner[proxy]

    def _may_ask(self, url: httpx2.URL) -> bool:
        return url.scheme == "https" or (is_loopback(url.host) and is_loopback(self._server.host))


class BoundedStream(httpx2.AsyncByteStream):
    """A body that ends with an error beyond the limit; a stream of events has a limit for each event instead."""

    def __init__(self, inner: httpx2.AsyncByteStream, traffic: Traffic, *, counted: bool) -> None:
        self._inner, self._traffic, self._counted = inner, traffic, counted

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, values = 0, ValueCount()
        async for chunk in self._inner:
            self._traffic.note()
            if self._counted:
                size += len(chunk)
                if size > LONGEST_SERVER_LINE:
                    raise httpx2.StreamError(f"an answer of more than {LONGEST_SERVER_LINE >> 20} MB")
                try:
                    values.add(chunk)
                except TooManyValues as error:
                    raise httpx2.StreamError(str(error)) from error
            yield chunk

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()


@asynccontextmanager
async def web_transport(
    spec: Connect, auth: httpx2.Auth | None, refusals: Refusals, traffic: Traffic
) -> AsyncGenerator[Streams]:
    """Streams for a client; the session is ended on the server at the end."""
    bounded = BoundedTransport(httpx2.URL(spec.url), refusals, traffic)

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = auth
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(headers=headers, timeout=timeout or TIMEOUT, auth=auth, transport=bounded)

    if spec.transport == "sse":
        streams = sse_client(spec.url, spec.headers, sse_read_timeout=900.0, httpx_client_factory=client, auth=auth)
        async with streams as (read, write):
            yield GuardedReader(read, traffic), GuardedWriter(write, traffic)
        return
    async with (
        client(spec.headers) as http,
        streamable_http_client(spec.url, http_client=http, max_sse_event_size=LONGEST_SERVER_LINE) as (read, write),
    ):
        yield GuardedReader(read, traffic), GuardedWriter(write, traffic)


def definition_problem(spec: Connect) -> str:
    """A sentence on an address or a header that no request can have; values of headers are not in it."""
    try:
        url = httpx2.URL(spec.url)
    except httpx2.InvalidURL:
        url = httpx2.URL("")
    if url.scheme not in {"http", "https"} or not url.host:
        return "Its url must begin with http:// or https:// and name a host."
    for name, value in spec.headers.items():
        if not _HEADER_NAME.fullmatch(name):
            return f"{name!a} is no name of a header."
        if not _HEADER_VALUE.fullmatch(value):
            return f"The value of the header {name} may only have printable ASCII characters."
    return ""


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
