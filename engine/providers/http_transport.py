"""Transport of requests to a service and their answers: the port, and its failures."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from tools.web.surroundings import untrusted_certificate

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
        return Misconfigured(untrusted_certificate(host, error, os.environ))
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
