"""Hosts in permission rules: those that commands may reach (`network`, `net(host)`), and those of web tools.

`domain:example.com` is one host, `domain:*.example.com` every host below it.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from engine.permissions.command_rules import quote
from tools.web.public_addresses import host_and_port

NET: Final = "net"
"""Name in rules about hosts; no tool is called so."""
ANY_HOST: Final = "*"
BELOW: Final = "*."
PORTS: Final = frozenset({80, 443})
"""Ports that a pattern without one means."""
MOST_HOSTS: Final = 40
"""Hosts of one rule."""
_SEPARATORS: Final = re.compile(r"[\s,]+")
_REGISTRIES: Final = frozenset({"ac", "co", "com", "edu", "gob", "gov", "mil", "ne", "net", "nom", "or", "org", "sch"})
"""Second labels under which countries hand out names: `*.co.uk` is as wide as `*.uk`."""
_SHARED: Final = frozenset([
    "github.io",
    "githubusercontent.com",
    "gitlab.io",
    "pages.dev",
    "workers.dev",
    "vercel.app",
    "netlify.app",
    "herokuapp.com",
    "web.app",
    "firebaseapp.com",
    "appspot.com",
    "amazonaws.com",
    "cloudfront.net",
    "azurewebsites.net",
    "blob.core.windows.net",
    "ngrok.io",
    "ngrok-free.app",
    "trycloudflare.com",
    "fly.dev",
    "onrender.com",
    "r2.dev",
    "blogspot.com",
    "readthedocs.io",
])
"""Domains below which anybody can have a host."""


class HostPattern(Struct, frozen=True):
    """One host, or every host below one, on one port or the usual ones."""

    host: str
    below: bool = False
    port: int = 0

    def means(self, host: str, port: int) -> bool:
        """True for this host and port."""
        named = host.endswith(f".{self.host}") if self.below else host == self.host
        return named and (port == self.port if self.port else port in PORTS)


class HostRules(Struct, frozen=True):
    """Patterns that allow hosts, and those that deny."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()

    @property
    def allows_any(self) -> bool:
        """True where every host is allowed, also without the proxy."""
        return ANY_HOST in self.allowed and not self.denied

    def admits(self, host: str, port: int) -> bool:
        """True where a pattern allows it and none denies it; an address that may be denied needs its own pattern."""
        allowed = (one for one in self.allowed if one != ANY_HOST or not self.may_deny(host))
        return not self.denies(host, port) and any(host_matches(one, host, port) for one in allowed)

    def may_deny(self, host: str) -> bool:
        """True for an address where hosts are denied: it may be that of one which is denied by its name."""
        return bool(self.denied) and is_address(host)

    def denies(self, host: str, port: int) -> bool:
        """True where a pattern denies it; one without a port denies every port."""
        return any(one == ANY_HOST or _denies(one, host, port) for one in self.denied)


NO_HOST_RULES: Final = HostRules()


def hosts_in(pattern: str) -> tuple[str, ...]:
    """The hosts of a pattern, which commas or blanks separate."""
    return tuple(one for one in _SEPARATORS.split(pattern.strip()) if one)


def parse_host(text: str) -> HostPattern | None:
    """`example.com`, `*.example.com` or either with `:port`; None for anything else."""
    below = text.startswith(BELOW)
    try:
        host, port = host_and_port(text.removeprefix(BELOW), 0) if _names_port(text) else (_host(text, below=below), 0)
    except ValueError:
        return None
    return HostPattern(host, below, port) if host else None


def is_host(text: str) -> bool:
    """True for `*` and for a pattern that can be read."""
    return text == ANY_HOST or parse_host(text) is not None


def host_matches(pattern: str, host: str, port: int) -> bool:
    """True if a pattern means this host, in the spelling of `plain_host`, and port."""
    if pattern == ANY_HOST:
        return port in PORTS
    parsed = parse_host(pattern)
    return parsed is not None and parsed.means(host, port)


def is_covered(needed: str, rules: HostRules) -> bool:
    """True where rules allow a host that a command needs: `host` or `host:port`."""
    parsed = parse_host(needed)
    if parsed is None or parsed.below:
        return needed in rules.allowed
    ports = (parsed.port,) if parsed.port else PORTS
    return all(rules.admits(parsed.host, port) for port in ports)


def is_address(host: str) -> bool:
    """True for an IP address, in the spelling of `plain_host`."""
    return ":" in host or host.replace(".", "").isdigit()


def why_no_hosts(pattern: str) -> str:
    """Reason why a pattern means no host, in one sentence; empty where it means some."""
    found = hosts_in(pattern)
    if not found:
        return "net() means no host; write net(example.com), net(*.example.com) or net(example.com:8443)."
    if len(_SEPARATORS.split(pattern.strip())) > MOST_HOSTS:
        return f"A rule names at most {MOST_HOSTS} hosts."
    return next((why for one in found if (why := _why_no_host(one))), "")


def hosts_effect(pattern: str) -> str:
    """Hosts that a pattern means, in words."""
    words: list[str] = []
    for one in hosts_in(pattern):
        below = one.startswith(BELOW)
        words.append("any host" if one == ANY_HOST else f"every host below {one[len(BELOW) :]}" if below else one)
    return ", ".join(words)


def _why_no_host(text: str) -> str:
    if text == ANY_HOST:
        return ""
    parsed = parse_host(text)
    if parsed is None:
        return f"{quote(text[:60])} is no host; write example.com, *.example.com or example.com:8443."
    labels = parsed.host.split(".")
    if parsed.below and (len(labels) < 2 or (len(labels) == 2 and labels[0] in _REGISTRIES) or parsed.host in _SHARED):
        return f"{quote(text[:60])} means hosts of anybody; write * for any host, or name the host."
    return ""


def _names_port(text: str) -> bool:
    return text.rpartition("]")[2].count(":") == 1


def _host(text: str, *, below: bool) -> str:
    host, _ = host_and_port(text.removeprefix(BELOW), 1)
    return "" if below and is_address(host) else host


def _denies(pattern: str, host: str, port: int) -> bool:
    parsed = parse_host(pattern)
    if parsed is None:
        return False
    below = parsed.below and host.endswith(f".{parsed.host}")
    return (below or host == parsed.host) and parsed.port in {0, port}


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
