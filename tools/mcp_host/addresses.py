"""Addresses that a browser may open: their host is what it looks like. Imports no SDK, so the engine uses it too."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

_PLAIN: Final = re.compile(r"[!-\[\]-~]{1,8192}")
"""Printable ASCII without the backslash, which browsers read as a slash."""


def is_plain_address(url: str) -> bool:
    """True for an address whose host is what it looks like, over TLS or on this machine."""
    if not _PLAIN.fullmatch(url):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    plain = bool(host) and "@" not in parts.netloc
    return plain and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def host_of(url: str) -> str:
    """The host of a plain address, with its port where one is written."""
    return urlsplit(url).netloc


def is_loopback(host: str) -> bool:
    """True for a name or an address of this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
