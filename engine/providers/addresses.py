"""Properties of a service that follow from its address."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from typing import Final
from urllib.parse import urlsplit

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
