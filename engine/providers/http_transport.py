"""Transport of requests to a service and their answers: the port, its failures, the limits of all data."""

from __future__ import annotations

import ipaddress
import math
import os
import re
import ssl
import sys
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from tools.web.surroundings import describe_untrusted_certificate

CONNECT_TIMEOUT: Final = 10.0
"""Seconds (SPEC BED-006)."""
KEEPALIVE: Final = 300.0
"""Seconds an idle connection is kept, so that a turn after a pause needs no new handshake."""
MOST_KEPT: Final = 8
"""Idle connections to one service."""

_WITHOUT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"})
_VALUE: Final = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")


class TransportError(Exception):
    """The request failed, or its answer broke off; the text says how, if anything does."""


class HungUp(TransportError):
    """The server closed the connection without a byte of an answer."""


class ConnectTimeout(TransportError):
    """Raised when no connection came about within `CONNECT_TIMEOUT`."""


class ReadTimeout(TransportError):
    """Raised after silence longer than the idle limit."""


class InvalidResponse(TransportError):
    """The address is none, or the body is in no known encoding."""


class OutOfBounds(InvalidResponse):
    """A response beyond a limit of Phoenix: the next try would be one again."""


class Misconfigured(TransportError):
    """Raised where waiting does not help: a certificate, a proxy, another protocol; the sentence names the fix."""


class Unsendable(TransportError):
    """A header contains characters that HTTP does not allow; neither is shown, since it may be the key."""


def tls_failure(error: ssl.SSLError, host: str) -> TransportError:
    """A failure of TLS with a server: what no wait changes is named."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Misconfigured(describe_untrusted_certificate(host, error, os.environ))
    if error.reason in _WITHOUT_TLS:
        return Misconfigured(f"{host} speaks no TLS; its address may have to begin with http:// instead of https://.")
    return TransportError(str(error))


def header_lines(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Names and values as they are sent. Raises Unsendable."""
    try:
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    except UnicodeEncodeError:  # a variable whose bytes are no text
        raise Unsendable from None
    if not all(_VALUE.fullmatch(value) for _, value in lines):
        raise Unsendable
    return lines


class HttpResponse(Protocol):
    """The answer of a service, its body still to come."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers by their names in lower case."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """The body, decoded, as it arrives. Raises CarrierError."""
        ...


class HttpTransport(Protocol):
    """Carries requests to one service."""

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send, and wait for the head of the answer; leaving early drops the connection. Raises CarrierError."""
        ...

    async def warm(self) -> None:
        """Open a connection ahead of the first request. Raises CarrierError."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


_PRINTED: Final = re.compile("[!-~]+")


def is_loopback(url: str) -> bool:
    """True when `url` names this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_straight(base_url: str) -> bool:
    """True when `base_url` is reached directly: no proxy, no name or password, no certificates of a system."""
    try:
        base = urlsplit(base_url)
        plain = base.hostname and base.username is None and base.port != 0 and _PRINTED.fullmatch(base_url)
    except ValueError:  # a port that is no number
        return False
    if not plain or base.scheme not in {"http", "https"}:
        return False
    if sys.platform != "linux":  # otherwise the system has its own proxies and certificates
        return base.scheme == "http" and is_loopback(base_url)
    return is_loopback(base_url) or not _has_proxy()


def _has_proxy() -> bool:
    names = ("http_proxy", "https_proxy", "all_proxy")
    return any(os.environ.get(name) or os.environ.get(name.upper()) for name in names)


MEBIBYTE: Final = 1024 * 1024
MOST_BODY: Final = 64 * MEBIBYTE
"""Bytes of one reply, unpacked: 128,000 tokens, each in an event of its own, take 40."""
MOST_DOCUMENT: Final = 8 * MEBIBYTE
"""Bytes of an answer that is read whole."""
MOST_EVENT: Final = 4 * MEBIBYTE
"""Bytes of one event or one line of a stream; a server that does not stream sends its reply in one."""
MOST_OBJECTS: Final = 50_000
"""Braces and brackets of one event: each may become an object of 100 bytes."""
MOST_TEXT: Final = 8_000_000
"""Characters of one reply, thinking and arguments included."""
MOST_PIECES: Final = 400_000
"""Pieces of one reply: each is held with 60 bytes more than its letters."""
MOST_STEP: Final = 512_000
"""Characters of one reply in the JSON protocol, which is read again from its beginning with every piece."""
MOST_BLOCKS: Final = 500
"""Blocks or calls of one reply."""
MOST_MODELS: Final = 5_000
MOST_NAME: Final = 300
"""Characters of the name of a model or a tool."""
MOST_TOKENS: Final = 10**9
LONGEST_REPLY: Final = 7_200.0
"""Seconds one reply may take."""
LONGEST_PINGS: Final = 1_800.0
"""Seconds in which only keep-alives may come; the idle limit of the connection restarts with each."""
MOST_SKIPPED: Final = 16
"""Informational answers ahead of the real one."""
_WORDS_READ: Final = 3_000
"""Characters of an error that are looked at."""
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|[hms])[a-z]{0,6} ?")
_AGAIN: Final = re.compile(rf"\b(?:try again|retry) (?:in|after) ((?:{_DURATION.pattern}){{1,3}})")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}
_MOST_RATIO: Final = 200
_FREE: Final = 4 * MEBIBYTE
"""Bytes that any body may unpack to, however small it was."""
_PIECE: Final = 64 * 1024


class ByteTally(Struct, eq=False):
    """Counts the parts of one reply."""

    characters: int = 0
    pieces: int = 0

    def text(self, *pieces: str) -> str:
        """Count more text; returns the violation of a limit, empty within them."""
        self.characters += sum(map(len, pieces))
        self.pieces += 1
        if self.pieces > MOST_PIECES:
            return f"more than {MOST_PIECES:,} pieces of one reply"
        return f"more than {MOST_TEXT:,} characters in one reply" if self.characters > MOST_TEXT else ""

    def block(self, number: int) -> str:
        """Check the number of blocks; returns the violation, empty within the limit."""
        return f"more than {MOST_BLOCKS} blocks in one reply" if number > MOST_BLOCKS else ""


class Unpacker:
    """A body as it was before its server packed it, although it was asked not to."""

    def __init__(self, encoding: str) -> None:
        self._received = self._given = 0
        match encoding.strip().lower():
            case "identity" | "":
                self._inflate: Any = None
            case "gzip" | "x-gzip" | "deflate":
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
            case _:
                raise OutOfBounds(f"a body encoded as {encoding[:MOST_NAME]}")

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decompress `data` a piece at a time. Raises InvalidResponse, also for a body made to fill the memory."""
        if self._inflate is None:
            yield data
            return
        self._received += len(data)
        try:
            while data and not self._inflate.eof:
                piece = self._inflate.decompress(data, _PIECE)
                data = self._inflate.unconsumed_tail
                self._given += len(piece)
                if self._given > _FREE + _MOST_RATIO * self._received:
                    raise OutOfBounds(f"a body that unpacks to more than {_MOST_RATIO} times its size")
                yield piece
        except zlib.error as error:
            raise InvalidResponse(str(error)) from None


async def limit_body(pieces: AsyncIterator[bytes], most: int) -> AsyncGenerator[bytes]:
    """The pieces of a body. Raises InvalidResponse once they are more than `most` bytes or take too long."""
    received, began = 0, monotonic()
    async for piece in pieces:
        received += len(piece)
        if received > most:
            raise OutOfBounds(f"more than {most // MEBIBYTE} MB in one answer")
        if monotonic() - began > LONGEST_REPLY:
            raise OutOfBounds(f"an answer that takes longer than {LONGEST_REPLY / 3600:g} hours")
        yield piece


def step_problem(characters: int) -> str:
    """Violation of a reply in the JSON protocol with `characters`; empty within the limit."""
    return f"more than {MOST_STEP:,} characters in one step" if characters > MOST_STEP else ""


def tokens(count: int | None) -> int:
    """A count of tokens as a server gives it, never below zero."""
    return min(max(count or 0, 0), MOST_TOKENS)


def seconds(text: str) -> float:
    """Seconds from now that a header names as a number or as an HTTP date; 0 where it is neither, a day at most."""
    text = text[:MOST_NAME].strip()
    try:
        given = float(text)
    except ValueError:
        given = seconds_until_date(text)
    return min(max(given, 0.0), 86_400.0) if math.isfinite(given) else 0.0


def seconds_named(words: str) -> float:
    """Seconds after which words say to try again ("in 5 seconds", "in 6m0.5s"): 0 without any, a day at most."""
    named = _AGAIN.search(words[:_WORDS_READ].lower())
    parts = _DURATION.findall(named.group(1)) if named else []
    return min(sum(float(number) * _UNITS[unit] for number, unit in parts), 86_400.0)


def seconds_until_date(date: str) -> float:
    """Seconds from now until an HTTP date, negative where it is past; 0 where it is none."""
    # A whole package, for a header that hardly any server sends.
    from datetime import UTC  # noqa: PLC0415 - as above
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - as above

    try:
        named = parsedate_to_datetime(date)
        return (named if named.tzinfo else named.replace(tzinfo=UTC)).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0.0
