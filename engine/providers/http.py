"""HTTP for providers: one lazy transport per service, streaming bodies, failures as `ProviderError`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from engine.providers.addresses import is_loopback, is_straight
from engine.providers.bounds import MOST_BODY, MOST_DOCUMENT, bounded
from engine.providers.direct_transport import DirectTransport
from engine.providers.failures import (
    ServerRefusal,
    Service,
    broken,
    misconfigured,
    redirected,
    refused,
    retry_after_seconds,
    silent,
    unreachable,
    unreadable,
    unsendable,
    web_page,
)
from engine.providers.http_transport import (
    CONNECT_TIMEOUT,
    ConnectTimeout,
    HttpResponse,
    HttpTransport,
    InvalidResponse,
    Misconfigured,
    OutOfBounds,
    ReadTimeout,
    TransportError,
    Unsendable,
)
from engine.providers.pace import ReadPace
from engine.providers.rate_headers import limits_in

if TYPE_CHECKING:
    from engine.ports import ProviderError, RateLimit

IDLE_TIMEOUT = 120.0
"""Seconds without a byte before a stream counts as dead (SPEC BED-006)."""
LOCAL_IDLE_TIMEOUT = 600.0
"""The limit for a server on this machine, which may process a long prompt for minutes (SPEC BED-006)."""
ERROR_BODY_LIMIT = 64 * 1024
ERROR_BODY_SECONDS = 10.0
"""Seconds for the text of a refusal; after them it counts as one without text."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
LOADING: Final = "loading model"
"""Message of llama.cpp under status 503 until it can answer."""
LOADING_SECONDS: Final = 180.0
"""Seconds for a server to load its model: a large one from a slow disk."""
LOADING_PAUSE: Final = 0.5
"""Seconds between two requests to a server that loads."""
_STATUSES: Final = frozenset(map(str, range(400, 600)))


class ErrorMetadata(msgspec.Struct):
    """Details that OpenRouter adds: `raw` is the answer of the service behind it."""

    raw: msgspec.Raw = msgspec.Raw()


class ErrorDetail(msgspec.Struct):
    """The inner object of an error body. As `code` llama.cpp gives a status, LiteLLM one in quotes, OpenAI a word."""

    message: str = ""
    type: str | None = None
    code: str | int | None = None
    metadata: ErrorMetadata | None = None

    @property
    def words(self) -> str:
        """The message, with the one of the service behind a gateway."""
        raw = bytes(self.metadata.raw).decode("utf-8", "replace") if self.metadata is not None else ""
        return f"{self.message}: {raw}" if raw else self.message


class ErrorBody(msgspec.Struct):
    """`{"error": {...}}` as Anthropic, OpenAI and llama.cpp write it; `{"error": "text"}` as Ollama does."""

    error: ErrorDetail | str | None = None
    message: str | None = None
    detail: msgspec.Raw = msgspec.Raw()


class Head(msgspec.Struct, eq=False):
    """The head of an answer, filled in once it is read."""

    limits: tuple[RateLimit, ...] = ()


class HttpService:
    """Speaks HTTP to one service and turns every failure into a `ProviderError`."""

    def __init__(self, service: Service, headers: Mapping[str, str], idle_timeout: float) -> None:
        self.service = service
        self._headers = dict(headers)
        self._idle_timeout = idle_timeout
        self._transport: HttpTransport | None = None
        self._making = asyncio.Lock()

    async def post_stream(self, path: str, body: bytes, head: Head | None = None) -> AsyncGenerator[bytes, None]:
        """Send `body` and give the pieces of the answer's body as they come; `head` is filled in before the first.

        Closing the generator drops the connection.

        Raises:
            ProviderError: the request failed, or the answer broke off.
        """
        transport = await self._carried()
        started = False
        try:
            async with self._accepted(transport, path, body) as answer:
                if answer.headers.get("content-type", "").startswith("text/html"):
                    raise web_page(self.service)
                started = True
                if head is not None:
                    head.limits = limits_in(answer.headers)
                pace = ReadPace()
                async for piece in bounded(answer.pieces(), MOST_BODY):
                    pace.arrived()
                    yield piece
                    if (seconds := pace.rest()) is not None:
                        await asyncio.sleep(seconds)
                        pace.rested()
        except TransportError as error:
            raise self.failure(error, started) from None

    async def get(self, path: str) -> bytes:
        """Fetch a whole document.

        Raises:
            ProviderError: it could not be fetched.
        """
        transport = await self._carried()
        try:
            async with transport.ask("GET", self.url(path), self._headers) as answer:
                if answer.status != 200:
                    raise await self._refusal(answer)
                async with asyncio.timeout(self._idle_timeout):
                    return b"".join([piece async for piece in bounded(answer.pieces(), MOST_DOCUMENT)])
        except TimeoutError:
            raise silent(self.service, self._idle_timeout) from None
        except TransportError as error:
            raise self.failure(error, started=False) from None

    async def warm(self) -> None:
        """Get ready and, towards another machine, open a connection; failures are silent."""
        transport = await self._carried()
        if is_loopback(self.service.base_url):
            return
        with contextlib.suppress(TransportError):
            await transport.warm()

    async def close(self) -> None:
        """Close every connection."""
        if self._transport is not None:
            await self._transport.close()
            self._transport = None

    def url(self, path: str) -> str:
        """The address of `path` under the base URL, with the query of that."""
        base, mark, query = self.service.base_url.partition("?")
        return base.rstrip("/") + path + mark + query

    def failure(self, error: TransportError, started: bool) -> ProviderError:
        """Translate a transport failure, before or after the answer had `started`."""
        match error:
            case ConnectTimeout():
                return unreachable(self.service, f"no connection within {CONNECT_TIMEOUT:g} s")
            case ReadTimeout():
                return silent(self.service, self._idle_timeout)
            case InvalidResponse():
                return unreadable(self.service, str(error), retryable=started and not isinstance(error, OutOfBounds))
            case Misconfigured():
                return misconfigured(self.service, str(error))
            case Unsendable():
                return unsendable(self.service)
            case _ if started:
                return broken(self.service)
            case _:
                return unreachable(self.service, str(error))

    async def _carried(self) -> HttpTransport:
        """The transport, loaded on first use: httpx2 in a thread, since that takes 110 ms."""
        async with self._making:
            if self._transport is None:
                self._transport = await _transport_to(self.service.base_url, self._idle_timeout)
            return self._transport

    @asynccontextmanager
    async def _accepted(self, transport: HttpTransport, path: str, body: bytes) -> AsyncGenerator[HttpResponse, None]:
        """The answer with status 200 to a request, repeated while the server loads its model."""
        end = monotonic() + LOADING_SECONDS
        while True:
            async with transport.ask("POST", self.url(path), self._headers, body) as answer:
                if answer.status == 200:
                    yield answer
                    return
                error = await self._refusal(answer)
            if answer.status != 503 or LOADING not in error.message.lower() or monotonic() > end:
                raise error
            await asyncio.sleep(LOADING_PAUSE)

    async def _refusal(self, answer: HttpResponse) -> ProviderError:
        if answer.status in REDIRECTS and "location" in answer.headers:
            return redirected(self.service, answer.headers["location"])
        body = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ERROR_BODY_SECONDS):
                async for piece in answer.pieces():
                    body += piece[:ERROR_BODY_LIMIT]
                    if len(body) > ERROR_BODY_LIMIT:
                        break
        error = refused(self.service, read_refusal(answer.status, answer.headers, body))
        error.limits = limits_in(answer.headers)
        return error


async def _transport_to(base_url: str, idle_timeout: float) -> HttpTransport:
    if is_straight(base_url):
        return DirectTransport(base_url, idle_timeout)
    module = await asyncio.to_thread(import_module, "engine.providers.httpx_transport")
    transport: HttpTransport = module.HttpxTransport(base_url, idle_timeout)
    return transport


def read_refusal(status: int, headers: Mapping[str, str], body: bytes) -> ServerRefusal:
    """Read a refusal from an HTTP answer, whatever the shape of its body."""
    retry_after = retry_after_seconds(headers.get("retry-after", ""))
    try:
        parsed = msgspec.json.decode(body, type=ErrorBody | list[ErrorBody])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ServerRefusal(status, "", body.decode("utf-8", "replace"), retry_after)
    first = parsed if isinstance(parsed, ErrorBody) else next(iter(parsed), ErrorBody())  # Gemini sends a list
    return error_in(first, status, retry_after)


def error_in(body: ErrorBody, status: int, retry_after: float = 0.0) -> ServerRefusal:
    """The refusal inside a parsed error body."""
    match body.error:
        case ErrorDetail() as detail:
            code = str(detail.code or "")
            is_status = code in _STATUSES
            word = detail.type if is_status or isinstance(detail.code, int) else code or detail.type
            told = int(code) if status == 200 and is_status else status
            return ServerRefusal(told, word or "", detail.words, retry_after)
        case str() as text:
            return ServerRefusal(status, "", text, retry_after)
        case None:
            return ServerRefusal(status, "", body.message or bytes(body.detail).decode("utf-8", "replace"), retry_after)
