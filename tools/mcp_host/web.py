"""Transports of the SDK over HTTP: bodies bounded, nothing compressed, and no request in plain text to a third host."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.request import getproxies_environment, proxy_bypass

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tools.mcp_host.addresses import is_loopback
from tools.mcp_host.guard import GuardedReader, GuardedWriter, Streams, TooManyValues, Traffic, ValueCount
from tools.mcp_host.limits import LONGEST_SERVER_LINE
from tools.mcp_host.protocol import Connect

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
