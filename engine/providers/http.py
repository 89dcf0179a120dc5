"""HTTP for providers: one lazy transport per service, streaming bodies, rate limits, failures as `ProviderError`."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from engine.ports import RateLimit, Unit
from engine.providers.direct_transport import DirectTransport
from engine.providers.failures import (
    ServerRefusal,
    Service,
    build_broken,
    build_misconfigured,
    build_redirected,
    build_refused,
    retry_after_seconds,
    silent,
    unreachable,
    unreadable,
    unsendable,
    web_page,
)
from engine.providers.http_transport import (
    CONNECT_TIMEOUT,
    MOST_BODY,
    MOST_DOCUMENT,
    MOST_TOKENS,
    ConnectTimeout,
    HttpResponse,
    HttpTransport,
    InvalidResponse,
    Misconfigured,
    OutOfBounds,
    ReadTimeout,
    TransportError,
    Unsendable,
    is_loopback,
    is_straight,
    limit_body,
    seconds_until_date,
)
from tools.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from engine.ports import ProviderError


BURST_SECONDS = 0.001
"""Time a burst may hold the loop: reading does not suspend while bytes are waiting (docs/decisions/textual.md)."""
WAITED_SECONDS = 0.0005
"""A read that took longer had to wait for the network."""
STEADY_READS = 8
"""Waits after which the stream is one of slow tokens, not a short answer."""
MERGE_SECONDS = 0.0625
"""Pause after each such wait: one frame of the screen, which draws 16 times a second. Waking up costs more than
reading: four streams of 80 tokens a second, one of them in view, take 9 % of a core with it and 11 % with 0.04 s."""


class Burst:
    """Times the reading of bytes that are there already, such as a reply that came in one piece."""

    def __init__(self) -> None:
        self._begun = monotonic()

    def is_over(self) -> bool:
        """True each time `BURST_SECONDS` have passed: the loop should run once."""
        now = monotonic()
        if now - self._begun <= BURST_SECONDS:
            return False
        self._begun = now
        return True


class ReadPace:
    """Times the reads of one stream."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._left = self._burst = clock.monotonic()
        self._waits = 0
        self._waited = False

    def note_piece(self) -> None:
        """A piece has been read."""
        now = self._clock.monotonic()
        self._waited = now - self._left > WAITED_SECONDS
        if self._waited:
            self._burst = now
            self._waits += 1

    def rest(self) -> float | None:
        """Seconds to sleep before the next read, 0 to let the loop run once, None to read on."""
        now = self._left = self._clock.monotonic()
        if self._waited and self._waits > STEADY_READS:
            return MERGE_SECONDS
        if now - self._burst > BURST_SECONDS:
            self._burst = now
            return 0.0
        return None

    def note_rest(self) -> None:
        """The sleep is over; it counts neither as waiting for the network nor as holding the loop."""
        self._left = self._burst = self._clock.monotonic()


LONGEST_RESET: Final = 60.0
"""Seconds. A limit that takes longer to fill up is one of an hour or a day, for which no call waits."""
LONGEST_VALUE: Final = 64
"""Characters of a header."""
FIRST_EPOCH: Final = 1e9
"""A number from here on is a time since 1970, in seconds or, from 1e12 on, in milliseconds."""
_ANTHROPIC: Final = {
    Unit.REQUESTS: "requests",
    Unit.TOKENS: "tokens",
    Unit.INPUT: "input-tokens",
    Unit.OUTPUT: "output-tokens",
}
_OPENAI: Final = {Unit.REQUESTS: "requests", Unit.TOKENS: "tokens"}
_COUNT: Final = re.compile(r"\d{1,15}", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_DURATION: Final = re.compile(
    r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?"
)
_SECONDS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)


def limits_in(headers: Mapping[str, str], now: float | None = None) -> tuple[RateLimit, ...]:
    """The limits that `headers`, named in lower case, state; `now` is the server's time since 1970."""
    if now is None:
        date = headers.get("date", "")[:LONGEST_VALUE]
        now = time.time() + (seconds_until_date(date) if date else 0.0)
    found = [
        _read(headers, unit, f"anthropic-ratelimit-{name}-{{}}", now, counts_cached=False)
        for unit, name in _ANTHROPIC.items()
    ]
    for unit, name in _OPENAI.items():
        for tail in ("", "-minute"):
            found.append(_read(headers, unit, f"x-ratelimit-{{}}-{name}{tail}", now, counts_cached=True))
    limits = {limit.unit: limit for limit in reversed(found) if limit is not None}
    if Unit.INPUT in limits and Unit.OUTPUT in limits:
        limits.pop(Unit.TOKENS, None)  # Anthropic repeats whichever of the two is closer
    return tuple(limits.values())


def set_limits(tokens: int, requests: int, *, counts_cached: bool) -> tuple[RateLimit, ...]:
    """The limits that a configuration sets; 0 for none."""
    wanted = ((Unit.TOKENS, tokens), (Unit.REQUESTS, requests))
    return tuple(RateLimit(unit, most, counts_cached=counts_cached) for unit, most in wanted if most)


def _read(headers: Mapping[str, str], unit: Unit, name: str, now: float, *, counts_cached: bool) -> RateLimit | None:
    limit = _count(headers.get(name.format("limit"), ""))
    if not limit:
        return None
    remaining = _count(headers.get(name.format("remaining"), ""))
    full_in = seconds_until(headers.get(name.format("reset"), ""), now)
    if full_in is not None and full_in > LONGEST_RESET + 1:
        remaining = full_in = None
    full_in = None if full_in is None else min(full_in, LONGEST_RESET)
    return RateLimit(unit, limit, None if remaining is None else min(remaining, limit), full_in, counts_cached)


def _count(text: str) -> int | None:
    text = text[:LONGEST_VALUE].strip()
    return min(int(text), MOST_TOKENS) if _COUNT.fullmatch(text) else None


def seconds_until(text: str, now: float) -> float | None:
    """Seconds that a duration, a number or a time names; never negative, None where it is none of them."""
    text = text[:LONGEST_VALUE].strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        epoch = number / 1000 if number >= FIRST_EPOCH * 1000 else number
        return max(epoch - now, 0.0) if number >= FIRST_EPOCH else number
    if text and (parts := _DURATION.fullmatch(text)):
        return sum(float(part) * size for part, size in zip(parts.groups(), _SECONDS, strict=True) if part)
    return _until_time(text, now) if _TIME.fullmatch(text) else None


def _until_time(text: str, now: float) -> float | None:
    whole_second = 0.0 if "." in text else 1.0  # which may have been cut, not rounded
    try:
        return max(datetime.fromisoformat(text.upper()).timestamp() + whole_second - now, 0.0)
    except (ValueError, OverflowError):
        return None


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
        transport = await self._load_transport()
        started = False
        try:
            async with self._ask_until_ready(transport, path, body) as answer:
                if answer.headers.get("content-type", "").startswith("text/html"):
                    raise web_page(self.service)
                started = True
                if head is not None:
                    head.limits = limits_in(answer.headers)
                pace = ReadPace()
                async for piece in limit_body(answer.pieces(), MOST_BODY):
                    pace.note_piece()
                    yield piece
                    if (seconds := pace.rest()) is not None:
                        await asyncio.sleep(seconds)
                        pace.note_rest()
        except TransportError as error:
            raise self.failure(error, started) from None

    async def get(self, path: str) -> bytes:
        """Fetch a whole document.

        Raises:
            ProviderError: it could not be fetched.
        """
        transport = await self._load_transport()
        try:
            async with transport.ask("GET", self.url(path), self._headers) as answer:
                if answer.status != 200:
                    raise await self._refusal(answer)
                async with asyncio.timeout(self._idle_timeout):
                    return b"".join([piece async for piece in limit_body(answer.pieces(), MOST_DOCUMENT)])
        except TimeoutError:
            raise silent(self.service, self._idle_timeout) from None
        except TransportError as error:
            raise self.failure(error, started=False) from None

    async def warm(self) -> None:
        """Get ready and, towards another machine, open a connection; failures are silent."""
        transport = await self._load_transport()
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
                return build_misconfigured(self.service, str(error))
            case Unsendable():
                return unsendable(self.service)
            case _ if started:
                return build_broken(self.service)
            case _:
                return unreachable(self.service, str(error))

    async def _load_transport(self) -> HttpTransport:
        """The transport, loaded on first use: httpx2 in a thread, since that takes 110 ms."""
        async with self._making:
            if self._transport is None:
                self._transport = await _transport_to(self.service.base_url, self._idle_timeout)
            return self._transport

    @asynccontextmanager
    async def _ask_until_ready(
        self, transport: HttpTransport, path: str, body: bytes
    ) -> AsyncGenerator[HttpResponse, None]:
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
            return build_redirected(self.service, answer.headers["location"])
        body = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ERROR_BODY_SECONDS):
                async for piece in answer.pieces():
                    body += piece[:ERROR_BODY_LIMIT]
                    if len(body) > ERROR_BODY_LIMIT:
                        break
        error = build_refused(self.service, read_refusal(answer.status, answer.headers, body))
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
