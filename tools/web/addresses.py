"""Addresses of the web that may be asked: public ones alone, however they are written (docs/security.md)."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final, Protocol
from urllib.parse import SplitResult, urlsplit, urlunsplit

from msgspec import Struct

from tools.contract import ToolInputError
from tools.failure import ToolFailure
from tools.web.public_addresses import is_public

LONGEST_URL: Final = 2_000
LOOKUP_SECONDS: Final = 10.0
_SHORT: Final = 200
"""Characters of an address that an error repeats."""


class Reach(Protocol):
    """Knows the addresses of hosts, and which may be asked."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """Addresses of a host; raises OSError where it has none."""
        ...

    def admits(self, address: str) -> bool:
        """True where a connection to an address is allowed."""
        ...

    def proxy(self, scheme: str, host: str) -> str:
        """URL of the proxy for a host, empty without: it looks up the name itself."""
        ...


class PublicReach(Struct, frozen=True):
    """The internet, without the networks of this machine and its surroundings."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """Ask the system's resolver."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def admits(self, address: str) -> bool:
        """True for a public address."""
        return is_public(address)

    def proxy(self, scheme: str, host: str) -> str:
        """Read the environment, as commands of the user do."""
        from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 5 ms, not for every start

        proxies = getproxies()
        found = proxies.get(scheme) or proxies.get("all") or ""
        return "" if not found or proxy_bypass(host) else found


class WebAddress(Struct, frozen=True):
    """A URL that may be asked, once its host is resolved."""

    url: str
    """Normalized, with a host in ASCII and no fragment."""
    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        """Host without the prefix by which sites send their visitors back and forth."""
        return self.host.removeprefix("www.")


def parse_url(text: str) -> WebAddress:
    """The address in `text`; http becomes https, except with a port of its own.

    Raises:
        ToolInputError: it is no web address, or names a host that can only be here.
    """
    shown = text[:_SHORT]
    if len(text) > LONGEST_URL or any(ord(character) <= 32 or ord(character) == 127 for character in text):
        raise ToolInputError(f"the url must be one address of at most {LONGEST_URL:,} characters without spaces.")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise ToolInputError(f"'{shown}' is no valid address; give one such as https://example.com/page.") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise ToolInputError(f"'{shown}' is no web address; give one that begins with https://.")
    if parts.username is not None or parts.password is not None:
        raise ToolInputError("an address with a user name or a password is not fetched; leave them out.")
    scheme = parts.scheme if port else "https"
    ascii_host = _checked_host(host)
    return WebAddress(_written(parts, scheme, ascii_host, port), scheme, ascii_host, port or _default(scheme))


async def admitted_address(address: WebAddress, reach: Reach, *, proxied: bool = False) -> str:
    """The IP address to connect to; one that is not public refuses the host, whatever others it has.

    Behind a proxy (`proxied`) a name that only the proxy can look up is admitted, as the empty address.

    Raises:
        ToolFailure: the host is unknown, or not public.
    """
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            found = await reach.resolve(address.host, address.port)
    except (OSError, UnicodeError, TimeoutError):
        found = []
    if not found and proxied:
        return ""
    if not found:
        raise ToolFailure(f"The host {address.host} is unknown, or its name cannot be looked up here.")
    if not all(reach.admits(one) for one in found):
        raise ToolFailure(
            f"{address.host} is an address of this machine or a private network, which is never fetched; "
            "use a command where the user wants that."
        )
    return found[0]


def _checked_host(host: str) -> str:
    """The host in ASCII, lower case, without a dot at its end."""
    host = host.rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError as error:
        raise ToolInputError(f"'{host[:_SHORT]}' is no host name.") from error
    if "." not in name or name.endswith((".local", ".localhost", ".internal", ".home.arpa")):
        raise ToolInputError(f"'{host[:_SHORT]}' is a host of this machine or its network, which is never fetched.")
    return name


def _written(parts: SplitResult, scheme: str, host: str, port: int | None) -> str:
    name = f"[{host}]" if ":" in host else host
    place = f"{name}:{port}" if port and port != _default(scheme) else name
    return urlunsplit((scheme, place, parts.path or "/", parts.query, ""))


def _default(scheme: str) -> int:
    return 443 if scheme == "https" else 80
