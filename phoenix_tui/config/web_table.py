"""`[web]` of the user's config.toml: the service that searches the web for models whose provider does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urlsplit

from msgspec import Struct

from phoenix_tui.config.table_error import TableError

SERVICES: Final[Mapping[str, str]] = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "searxng": "",
    "tavily": "https://api.tavily.com/search",
}
"""Address of each service (their API documentation, November 2026); empty for one that the user runs."""
KEY_VARIABLES: Final[Mapping[str, str]] = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}
LONGEST: Final = 1_000
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_KEYS: Final = ("search", "url", "key_env")


class WebSettings(Struct, frozen=True):
    """The service, its address, and the variable of its key."""

    search: str
    url: str
    key_env: str = ""


def web_settings_of(table: object) -> WebSettings:
    """The settings of a table.

    Raises:
        TableError: a key or a value is not allowed.
    """
    if not isinstance(table, dict):
        raise TableError("", "'web' must be a table [web].")
    found = cast("dict[str, object]", table)
    for key, value in found.items():
        if key not in _KEYS:
            raise TableError(key, f"unknown key '{key[:100]}' in [web]. Valid keys are {', '.join(_KEYS)}.")
        if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
            raise TableError(key, f"'{key}' in [web] must be text on one line.")
    texts = cast("dict[str, str]", found)
    service = texts.get("search", "")
    if service not in SERVICES:
        raise TableError("search", f"[web] needs 'search', one of {', '.join(SERVICES)}.")
    url = texts.get("url", "") or SERVICES[service]
    _check_url(service, url)
    if service == "searxng" and not urlsplit(url).path.strip("/"):
        url = f"{url.rstrip('/')}/search"
    variable = texts.get("key_env", "") or KEY_VARIABLES.get(service, "")
    if variable and service not in KEY_VARIABLES:
        raise TableError("key_env", f"{service} takes no key; leave 'key_env' out.")
    return WebSettings(service, url, variable)


def _check_url(service: str, url: str) -> None:
    """Raise where the address is none, or a key would cross the network in plain text."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host or port == 0 or parts.fragment or " " in url:
        raise TableError("url", f"'url' in [web] must be the http:// or https:// address of {service}.")
    if parts.username is not None or parts.password is not None:
        raise TableError("url", "'url' in [web] cannot hold a user name or a password.")
    if parts.scheme == "http" and service in KEY_VARIABLES and host not in _LOOPBACK:
        raise TableError("url", f"the key of {service} is not sent without encryption; use an https:// address.")
