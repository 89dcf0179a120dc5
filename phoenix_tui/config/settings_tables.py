"""Sizes and the tables of the user's config.toml: `[status_line]` and `[web]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urlsplit

from msgspec import Struct


class TableError(ValueError):
    """Raised for an invalid table; `key` is the wrong one, empty for the table itself."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


AUTO: Final = "auto"
LEAST_MEGABYTES: Final = 256
"""Phoenix itself takes 60 to 80."""
ALLOWED: Final = f"auto, 0 for no limit, or at least {LEAST_MEGABYTES} (MB), such as 2048 or 4 GB"
_SIZE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(MB|GB|M|G|)", re.IGNORECASE | re.ASCII)


def megabytes(text: str) -> int | None:
    """`4 GB` or `2048` in MB, 0 for no limit; None for an invalid or too small size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    number = int(float(found[1]) * (1024 if found[2][:1] in {"G", "g"} else 1))
    return number if number >= LEAST_MEGABYTES or float(found[1]) == 0 else None


BOUNDS: Final = {"timeout_ms": (50, 10_000), "min_interval_ms": (100, 3_600_000), "padding": (0, 20)}
"""Least and most of each number."""
LONGEST_COMMAND: Final = 4096


class StatusLineSettings(Struct, frozen=True):
    """The program, and its limits."""

    command: str
    """Command line for `/bin/sh -c`."""
    timeout_ms: int = 1000
    min_interval_ms: int = 300
    """Least time between the starts of two runs."""
    padding: int = 0
    """Blank cells at the left."""


def status_line_of(table: object) -> StatusLineSettings:
    """The settings of a table.

    Raises:
        TableError: a key or a value is not allowed.
    """
    if not isinstance(table, dict):
        raise TableError("", "'status_line' must be a table [status_line].")
    found = dict(cast("dict[str, object]", table))
    command = found.pop("command", None)
    if not isinstance(command, str) or not command.strip() or len(command) > LONGEST_COMMAND or "\0" in command:
        raise TableError("command", "[status_line] needs 'command', a command line for /bin/sh.")
    numbers = {key: _number(key, value) for key, value in found.items()}
    return StatusLineSettings(command, **numbers)


def _number(key: str, value: object) -> int:
    if key not in BOUNDS:
        raise TableError(key, f"unknown key '{key}' in [status_line]. Valid keys are command, {', '.join(BOUNDS)}.")
    least, most = BOUNDS[key]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise TableError(key, f"'{key}' must be a whole number from {least} to {most}, not {value!r}.")
    return value


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
