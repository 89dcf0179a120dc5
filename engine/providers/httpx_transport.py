"""HTTP by httpx2: through proxies, with credentials in an address, with the certificates of any system."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from urllib.parse import urlsplit

import httpx2

from engine.providers.http_transport import (
    CONNECT_TIMEOUT,
    KEEPALIVE,
    MOST_BODY,
    MOST_DOCUMENT,
    MOST_EVENT,
    MOST_KEPT,
    ConnectTimeout,
    InvalidResponse,
    Misconfigured,
    ReadTimeout,
    TransportError,
    Unpacker,
    Unsendable,
    header_lines,
    is_loopback,
    tls_failure,
)
from tools.web.surroundings import describe_proxy_refusal, proxy_of, without_connections

MOST_LINES = 2_000
"""Lines of one event, or of one document."""
NOISY_LIBRARIES = ("httpcore2", "httpx2", "anthropic")
"""Loggers whose debug lines quote headers and bodies, which may contain a key or a conversation."""


def new_client(base_url: str, idle_timeout: float, *, bounded: bool = False) -> httpx2.AsyncClient:
    """A client for one service: proxies honoured except towards this machine, no redirects, HTTP/1.1 kept alive.

    `bounded`: for a reader that has no bounds of its own. Making its TLS context takes 20 ms: call it from a thread.
    """
    for library in NOISY_LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    plain = urlsplit(base_url).scheme == "http" and is_loopback(base_url)
    return httpx2.AsyncClient(
        # An empty context trusts no certificate: right for http://, where it is never used.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else httpx2.create_ssl_context(),
        timeout=httpx2.Timeout(idle_timeout, connect=CONNECT_TIMEOUT),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=MOST_KEPT, keepalive_expiry=KEEPALIVE),
        trust_env=not is_loopback(base_url),
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [limit_response]} if bounded else {},
    )


class BoundedBody(httpx2.AsyncByteStream):
    """A body for a reader that has no bounds of its own, such as an SDK: no more bytes, and no larger event.

    The SDK puts an event together line by line and copies it for each, so lines are counted too.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, most: int, most_event: int) -> None:
        self._stream, self._most, self._most_event = stream, most, most_event

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = size = lines = 0
        last = b""
        async for piece in self._stream:
            received += len(piece)
            plain = last + piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            end = plain.rfind(b"\n\n")
            open_part = plain[end + 2 :] if end >= 0 else plain[len(last) :]
            size = len(open_part) + (size if end < 0 else 0)
            lines = open_part.count(b"\n") + (lines if end < 0 else 0)
            last = plain[-1:]
            if received > self._most or size > self._most_event or lines > MOST_LINES:
                raise httpx2.DecodingError("more data than any reply has")
            yield piece

    async def aclose(self) -> None:
        """End it."""
        await self._stream.aclose()


async def limit_response(response: httpx2.Response) -> None:
    """Limit the body of an answer to the bounds of a reply; for the hook `response` of a client."""
    if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise httpx2.DecodingError("a compressed body, which was not requested")
    streamed = response.headers.get("content-type", "").startswith("text/event-stream")
    most, most_event = (MOST_BODY, MOST_EVENT) if streamed else (MOST_DOCUMENT, MOST_DOCUMENT)
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = BoundedBody(response.stream, most, most_event)


def convert_failure(error: Exception) -> TransportError:
    """The same failure in the words of `HttpTransport`."""
    match error:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return ConnectTimeout()
        case httpx2.ReadTimeout():
            return ReadTimeout()
        case httpx2.LocalProtocolError():  # its text quotes the header, which may be the key
            return Unsendable()
        case httpx2.ProxyError():
            sentence, may_pass = describe_proxy_refusal(_address(error).scheme, str(error), os.environ)
            return TransportError(sentence) if may_pass else Misconfigured(sentence)
        case httpx2.ConnectError():
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, ssl.SSLError):
                cause = cause.__cause__ or cause.__context__
            address = _address(error)
            if cause is not None:
                return tls_failure(cause, address.netloc.decode("ascii", "replace"))
            name, _ = proxy_of(address.scheme, os.environ)
            return TransportError(f"{error}; {name} names a proxy" if name else str(error))
        case httpx2.DecodingError() | httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return InvalidResponse(str(error))
        case _:
            return TransportError(str(error))


def _address(error: httpx2.RequestError) -> httpx2.URL:
    try:
        return error.request.url
    except RuntimeError:  # raised outside of a request
        return httpx2.URL("")


class HttpxResponse:
    """Implements `Answer`."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """See `Answer.pieces`."""
        response = self._response
        unpacker = Unpacker(response.headers.get("content-encoding", ""))  # httpx2 unpacks without a bound
        with _failures():
            async for received in response.aiter_raw():
                for piece in unpacker.pieces(received):
                    yield piece


class HttpxTransport:
    """Implements `HttpTransport`."""

    def __init__(self, base_url: str, idle_timeout: float) -> None:
        self._base_url = base_url
        self._idle_timeout = idle_timeout
        self._client: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[HttpxResponse]:
        """See `HttpTransport.ask`."""
        client = await self._get_client()
        encoded = header_lines(headers)
        with _failures():
            async with contextlib.AsyncExitStack() as answering:
                asked = client.stream(method, url, content=body or None, headers=encoded)
                try:  # its own limit restarts with every byte of an endless head
                    async with asyncio.timeout(self._idle_timeout):
                        response = await answering.enter_async_context(asked)
                except TimeoutError:
                    raise ReadTimeout from None
                yield HttpxResponse(response)

    async def warm(self) -> None:
        """Open a connection in advance with a request without headers, since they contain the key."""
        client = await self._get_client()
        with _failures():
            await client.head(self._base_url)

    async def close(self) -> None:
        """See `HttpTransport.close`."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _get_client(self) -> httpx2.AsyncClient:
        async with self._making:
            if self._client is None:
                try:
                    self._client = await asyncio.to_thread(new_client, self._base_url, self._idle_timeout)
                except (OSError, ValueError, ImportError, httpx2.InvalidURL) as error:  # of a variable
                    raise Misconfigured(without_connections(error, os.environ)) from None
            return self._client


@contextlib.contextmanager
def _failures() -> Generator[None]:
    """Convert errors to their class and cause, since their texts may quote headers."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise convert_failure(error) from None
