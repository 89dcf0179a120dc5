"""HTTP by httpx2: through proxies, with credentials in an address, with the certificates of any system."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from urllib.parse import urlsplit

import httpx2

from engine.providers.addresses import is_loopback
from engine.providers.carrier import (
    CONNECT_TIMEOUT,
    KEEPALIVE,
    MOST_KEPT,
    CarrierError,
    NotConnected,
    Silent,
    Unreadable,
)

NOISY_LIBRARIES = ("httpcore2", "httpx2", "anthropic")
"""Their debug lines quote headers and bodies, where a key or a conversation may stand."""


def new_client(base_url: str, idle_timeout: float) -> httpx2.AsyncClient:
    """A client for one service: proxies honoured except towards this machine, no redirects, HTTP/1.1 kept alive.

    Making its TLS context takes 20 ms: call it from a thread.
    """
    for library in NOISY_LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    plain = urlsplit(base_url).scheme == "http" and is_loopback(base_url)
    return httpx2.AsyncClient(
        # An unloaded context trusts nobody: right for http://, where it is never used.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else httpx2.create_ssl_context(),
        timeout=httpx2.Timeout(idle_timeout, connect=CONNECT_TIMEOUT),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=MOST_KEPT, keepalive_expiry=KEEPALIVE),
        trust_env=not is_loopback(base_url),
        follow_redirects=False,
    )


def carried(error: Exception) -> CarrierError:
    """The same failure in the words of `Carrier`."""
    match error:
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return NotConnected()
        case httpx2.ReadTimeout():
            return Silent()
        case httpx2.DecodingError() | httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return Unreadable(str(error))
        case _:
            return CarrierError(str(error))


class HttpxAnswer:
    """Implements `Answer`."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """See `Answer.pieces`."""
        response = self._response
        encoded = "content-encoding" in response.headers
        with _failures():
            async for piece in response.aiter_bytes() if encoded else response.aiter_raw():
                yield piece


class HttpxCarrier:
    """Implements `Carrier`."""

    def __init__(self, base_url: str, idle_timeout: float) -> None:
        self._base_url = base_url
        self._idle_timeout = idle_timeout
        self._client: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[HttpxAnswer]:
        """See `Carrier.ask`."""
        client = await self._made()
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        with _failures():
            async with client.stream(method, url, content=body or None, headers=encoded) as response:
                yield HttpxAnswer(response)

    async def warm(self) -> None:
        """See `Carrier.warm`; without the headers of a request, where the key stands."""
        client = await self._made()
        with _failures():
            await client.head(self._base_url)

    async def close(self) -> None:
        """See `Carrier.close`."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _made(self) -> httpx2.AsyncClient:
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(new_client, self._base_url, self._idle_timeout)
            return self._client


@contextlib.contextmanager
def _failures() -> Generator[None]:
    """Their texts may quote headers, so only class and cause go on."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise carried(error) from None
