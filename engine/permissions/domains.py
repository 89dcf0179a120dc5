"""Rules for web tools: `domain:example.com` for one host, `domain:*.example.com` for every host below it."""

from __future__ import annotations

import re
from typing import Final

DOMAIN: Final = "domain:"
LONGEST_HOST: Final = 253
"""Characters of a host name (RFC 1035)."""
_HOST: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NOT_HOST: Final = (
    "{domain} is no host name; write domain:example.com, or domain:*.example.com for every host below it."
)


def host_name(text: str) -> str:
    """A host as it is compared: ASCII, small letters, no dot at the end; empty for no host name."""
    host = text.removesuffix(".").lower()
    if len(host) > LONGEST_HOST:
        return ""
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii").lower()
        except UnicodeError:
            return ""
    return host if _HOST.fullmatch(host) else ""


def is_domain(pattern: str) -> bool:
    """True for a pattern about a host."""
    return pattern.startswith(DOMAIN)


def why_no_domain(pattern: str) -> str:
    """Reason why a pattern about a host can match none, in one sentence; empty where it can."""
    named = pattern.removeprefix(DOMAIN)
    return "" if host_name(named.removeprefix("*.")) else _NOT_HOST.format(domain=f"“{named[:60]}”")


def domain_matches(pattern: str, host: str) -> bool:
    """True if a pattern about a host means `host`; a star stands for one or more names below the domain."""
    named, asked = pattern.removeprefix(DOMAIN), host_name(host)
    if not asked or why_no_domain(pattern):
        return False
    below = named.startswith("*.")
    wanted = host_name(named.removeprefix("*."))
    return asked.endswith(f".{wanted}") if below else asked == wanted
