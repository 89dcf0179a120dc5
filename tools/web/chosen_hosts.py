"""Hosts that the user named in a setting: any address is admitted, unlike one that a model asks for."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from tools.web.addresses import PublicReach, WebAddress

_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class ChosenReach(PublicReach, frozen=True):
    """The host of a setting, wherever it is."""

    def admits(self, address: str) -> bool:
        """True: the user chose it."""
        return True

    def proxy(self, scheme: str, host: str) -> str:
        """Read the environment; a host of this machine has no proxy."""
        if host in _HERE:
            return ""
        proxies = getproxies()
        found = proxies.get(scheme) or proxies.get("all") or ""
        return "" if not found or proxy_bypass(host) else found


def chosen_address(url: str) -> WebAddress:
    """The address of a setting as it is written: any host, and http where the user wrote it."""
    parts = urlsplit(url)
    default = 443 if parts.scheme == "https" else 80
    return WebAddress(url, parts.scheme, parts.hostname or "", parts.port or default)
