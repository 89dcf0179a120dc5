"""HTTP for providers: one lazy client per service, streaming bodies, failures as `ProviderError`."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
from collections.abc import AsyncGenerator, Mapping
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from engine.providers.failures import (
    Refusal,
    Service,
    broken,
    redirected,
    refused,
    retry_after_seconds,
    silent,
    unreachable,
    unreadable,
)
from engine.providers.pace import Pace

if TYPE_CHECKING:
    import httpx2

    from engine.ports import ProviderError

CONNECT_TIMEOUT = 10.0
"""Seconds (SPEC BED-006)."""
IDLE_TIMEOUT = 120.0
"""Seconds without a byte before a stream counts as dead (SPEC BED-006)."""
LOCAL_IDLE_TIMEOUT = 600.0
"""The same for a server on this machine, which may read a long prompt for minutes (SPEC BED-006)."""
KEEPALIVE = 300.0
"""Seconds an idle connection is kept, so that a turn after a pause needs no new handshake."""
ERROR_BODY_LIMIT = 64 * 1024
NOISY_LIBRARIES = ("httpcore2", "httpx2", "anthropic")
"""Their debug lines quote headers and bodies, where a key or a conversation may stand."""


class ErrorDetail(msgspec.Struct):
    """The inner object of an error body. llama.cpp gives a number as `code`, OpenAI a word or null."""

    message: str = ""
    type: str | None = None
    code: str | int | None = None


class ErrorBody(msgspec.Struct):
    """`{"error": {...}}` as Anthropic, OpenAI and llama.cpp write it; `{"error": "text"}` as Ollama does."""

    error: ErrorDetail | str | None = None
    message: str | None = None
    detail: msgspec.Raw = msgspec.Raw()


@cache
def tls_context() -> ssl.SSLContext:
    """The one TLS context of the process; making it takes about 20 ms, so it is made off the loop."""
    import httpx2  # noqa: PLC0415 - 44 ms, must not load before the first frame (LIBRARIES 3)

    return httpx2.create_ssl_context()


def is_loopback(url: str) -> bool:
    """Whether `url` names this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def new_client(base_url: str, idle_timeout: float) -> httpx2.AsyncClient:
    """A client for one service: proxies honoured except towards this machine, no redirects, HTTP/1.1 kept alive."""
    import httpx2  # noqa: PLC0415 - 44 ms, must not load before the first frame (LIBRARIES 3)

    for library in NOISY_LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)
    plain = urlsplit(base_url).scheme == "http"
    return httpx2.AsyncClient(
        # An unloaded context trusts nobody: right for http://, where it is never used.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain and is_loopback(base_url) else tls_context(),
        timeout=httpx2.Timeout(idle_timeout, connect=CONNECT_TIMEOUT),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=KEEPALIVE),
        trust_env=not is_loopback(base_url),
        follow_redirects=False,
    )


class HttpService:
    """Speaks HTTP to one service and turns every failure into a `ProviderError`."""

    def __init__(self, service: Service, headers: Mapping[str, str], idle_timeout: float) -> None:
        self.service = service
        self._headers = dict(headers)
        self._idle_timeout = idle_timeout
        self._client: httpx2.AsyncClient | None = None
        self._making = asyncio.Lock()

    async def post_stream(self, path: str, body: bytes) -> AsyncGenerator[bytes, None]:
        """Send `body` and give the pieces of the answer's body as they come.

        Closing the generator drops the connection.

        Raises:
            ProviderError: the request failed, or the answer broke off.
        """
        client = await self.client()
        import httpx2  # noqa: PLC0415 - after the client, whose thread has loaded it

        started = False
        try:
            async with client.stream("POST", self.url(path), content=body, headers=self._headers) as response:
                if response.status_code != 200:
                    raise await self._refusal(response)
                started = True
                encoded = "content-encoding" in response.headers
                pace = Pace()
                async for chunk in response.aiter_bytes() if encoded else response.aiter_raw():
                    pace.arrived()
                    yield chunk
                    if (seconds := pace.rest()) is not None:
                        await asyncio.sleep(seconds)
                        pace.rested()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self.failure(error, started) from None

    async def get(self, path: str) -> bytes:
        """Fetch a whole document.

        Raises:
            ProviderError: it could not be fetched.
        """
        client = await self.client()
        import httpx2  # noqa: PLC0415 - after the client, whose thread has loaded it

        try:
            async with client.stream("GET", self.url(path), headers=self._headers) as response:
                if response.status_code != 200:
                    raise await self._refusal(response)
                return await response.aread()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self.failure(error, started=False) from None

    async def warm(self) -> None:
        """Make the client and, towards another machine, open a connection; failures are silent."""
        client = await self.client()
        import httpx2  # noqa: PLC0415 - after the client, whose thread has loaded it

        if is_loopback(self.service.base_url):
            return
        try:
            await client.head(self.service.base_url)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
            return

    async def client(self) -> httpx2.AsyncClient:
        """The client, made on first use in a thread."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(new_client, self.service.base_url, self._idle_timeout)
            return self._client

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def url(self, path: str) -> str:
        """The address of `path` under the base URL."""
        return self.service.base_url.rstrip("/") + path

    def failure(self, error: Exception, started: bool) -> ProviderError:
        """What an error of the HTTP library means; its text may quote headers, so only its class and cause count."""
        import httpx2  # noqa: PLC0415 - loaded by the client already

        match error:
            case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                return unreachable(self.service, f"no connection within {CONNECT_TIMEOUT:g} s")
            case httpx2.ReadTimeout():
                return silent(self.service, self._idle_timeout)
            case httpx2.DecodingError() | httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
                return unreadable(self.service, str(error))
            case _ if started:
                return broken(self.service)
            case _:
                return unreachable(self.service, str(error))

    async def _refusal(self, response: httpx2.Response) -> ProviderError:
        if response.is_redirect:
            return redirected(self.service, response.headers.get("location", ""))
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > ERROR_BODY_LIMIT:
                break
        return refused(self.service, read_refusal(response.status_code, response.headers, body))


def read_refusal(status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
    """The refusal that an HTTP answer stands for, whatever shape its body has."""
    retry_after = retry_after_seconds(headers.get("retry-after", ""))
    try:
        parsed = msgspec.json.decode(body, type=ErrorBody)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Refusal(status, "", body.decode("utf-8", "replace"), retry_after)
    return error_in(parsed, status, retry_after)


def error_in(body: ErrorBody, status: int, retry_after: float = 0.0) -> Refusal:
    """The refusal inside a parsed error body."""
    match body.error:
        case ErrorDetail() as detail:
            word = detail.code if isinstance(detail.code, str) and detail.code else detail.type
            told = detail.code if status == 200 and isinstance(detail.code, int) else status
            return Refusal(told, word or "", detail.message, retry_after)
        case str() as text:
            return Refusal(status, "", text, retry_after)
        case None:
            return Refusal(status, "", body.message or bytes(body.detail).decode("utf-8", "replace"), retry_after)
