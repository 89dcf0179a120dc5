"""Access to the server of `phoenix serve`: pure decisions over the headers of a request."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

USUAL_PORTS: Final = {"http": 80, "https": 443}
"""Ports that a browser leaves out of Host and Origin."""
SAME_SITE: Final = frozenset({"same-origin", "none"})
"""Sec-Fetch-Site of our own pages, and of an address that was typed or opened from outside a browser."""
PRIVATE_PATHS: Final = ("/ws", "/download")
"""Paths of data beyond the bare page: a browser always sends the origin of a request for them."""
LONGEST_HEADER: Final = 4096
"""Characters of a header that is looked at; no browser sends a longer Host, Origin or cookie of ours."""


class PageAddress(Struct, frozen=True):
    """Address of the server, and the keys that give access."""

    host: str
    port: int
    token: str
    public_url: str = ""
    """Address before the path in a browser, when a proxy is in between."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url})"

    @property
    def url(self) -> str:
        return self.public_url.rstrip("/") or f"http://{_bracket(self.host)}:{self.port}"

    @property
    def invitation(self) -> str:
        return f"{self.url}/?token={self.token}"

    @property
    def origin(self) -> str:
        """Origin header of browsers for pages of this server."""
        parts = urlsplit(self.url.lower())
        return f"{parts.scheme}://{_authority(parts)}"

    @property
    def hosts(self) -> frozenset[str]:
        """Host headers that a browser, or the proxy before this server, may send."""
        own = urlsplit(f"http://{_bracket(self.host)}:{self.port}".lower())
        return frozenset({_authority(own), _authority(urlsplit(self.url.lower()))})

    @property
    def cookie_name(self) -> str:
        """Browsers share cookies between all ports of a host, so the port is part of the name."""
        return f"phoenix_{self.port}"

    @property
    def cookie(self) -> str:
        """Shows that its holder was invited; opens the page and nothing else."""
        return self._derive("cookie")

    @property
    def page_key(self) -> str:
        """Opens a tab. The page keeps it where a browser keeps ports apart, as it does not with a cookie."""
        return self._derive("page")

    def _derive(self, purpose: str) -> str:
        return hmac.digest(self.token.encode(), f"{purpose} {self.port}".encode(), "sha256").hex()


def refusal(address: PageAddress, path: str, headers: Mapping[str, str]) -> str:
    """The reason why a request with these headers is not answered, empty where it may be.

    Host defends against names that a foreign page binds to this machine, Origin and Sec-Fetch-Site against pages of
    other sites, of other ports, and of other programs on this machine.
    """
    host, origin = headers.get("Host", "").lower(), headers.get("Origin")
    site = headers.get("Sec-Fetch-Site")
    if len(host) > LONGEST_HEADER or host not in address.hosts:
        return f"This Phoenix is only served at {address.url}; behind a proxy, start it with --public-url."
    if origin is not None and not same(origin.lower(), address.origin):
        return f"Only pages of {address.url} can use this Phoenix."
    if site is not None and site not in SAME_SITE:
        return f"Open {address.url} directly, not from another page."
    if path.startswith("/ws") and origin is None:
        return "The request has no Origin header; use a browser."
    if path.startswith(PRIVATE_PATHS) and origin is None and site is None:
        return "The request has no Sec-Fetch-Site header; use a browser."
    return ""


def same(text: str, secret: str) -> bool:
    """Compare in constant time; text that is no ASCII, or overlong, is simply another one."""
    return hmac.compare_digest(text[:LONGEST_HEADER].encode("utf-8", "backslashreplace"), secret.encode())


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _authority(parts: SplitResult) -> str:
    port = parts.port
    shown = f":{port}" if port is not None and port != USUAL_PORTS.get(parts.scheme) else ""
    return f"{_bracket(parts.hostname or '')}{shown}"


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host
