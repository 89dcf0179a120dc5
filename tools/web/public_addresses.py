"""Public addresses and host names in one spelling; imports nothing heavy, since the proxy of commands uses it too."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Final

LONGEST_HOST: Final = 253
"""Characters of a host name (RFC 1035)."""
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""The only addresses of IPv6 that are given out (RFC 4291 and IANA); others are here, or mean nothing."""
_DOCUMENTS: Final = ipaddress.ip_network("3fff::/20")
"""Documentation (RFC 9637), which Python before 3.13 takes for public."""
_RELAYS: Final = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("192.88.99.0/24"))
"""Protocol assignments and the former relays of 6to4, which lead to the nearest machine that answers."""
_ISATAP: Final = 0xFCFFFFFF
"""Bits of an interface's number by which it holds an IPv4 address (RFC 5214)."""
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*")
_ROUTES: Final = {4: "/proc/net/route", 6: "/proc/net/ipv6_route"}
_MOST_ROUTES: Final = 4 << 20
"""Characters that are read of a table of routes; behind a longer one no address counts as outside."""
_WIDEST: Final = {4: 8, 6: 48}
"""Bits of a network's prefix, by version: a route that is wider leads to the internet, as of a VPN."""
_ROUTE_UP: Final = 0x1
_ROUTE_REJECTS: Final = 0x200
_DISCARD: Final = 9
"""A port for a connection that is never made."""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_outside(text: str) -> bool:
    """True for a public address that is neither of this machine nor of a network that it is in.

    Such an address may be public too: in IPv6 every device of a home has one, which its router hides from strangers.
    """
    if not is_public(text):
        return False
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and (address in _NAT64 or address.ipv4_mapped is not None):
        address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    own = _own_address_for(address)
    return own is None or not (own == address or _is_near(own, address))


def _own_address_for(address: _Address) -> _Address | None:
    """The address of this machine that a connection would come from; None without a route. Sends nothing."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), _DISCARD))
            return ipaddress.ip_address(str(probe.getsockname()[0]).partition("%")[0])
    except OSError:
        return None


def _is_near(own: _Address, address: _Address) -> bool:
    """True where Linux lists a network of both that needs no router, or more routes than are read."""
    read = _route if address.version == 4 else _route_of_ipv6
    try:
        with open(_ROUTES[address.version], encoding="ascii") as file:  # noqa: PTH123 - pathlib costs the proxy its start
            table = file.read(_MOST_ROUTES + 1)
    except (OSError, UnicodeError):
        return False
    if len(table) > _MOST_ROUTES:
        return True
    for line in table.splitlines():
        try:
            network = read(line.split())
        except (ValueError, IndexError):  # the head
            continue
        if (
            network is not None
            and network.prefixlen >= _WIDEST[network.version]
            and own in network
            and address in network
        ):
            return True
    return False


def _route(words: list[str]) -> _Network | None:
    flags = int(words[3], 16)
    if int(words[2], 16) or flags & _ROUTE_REJECTS or not flags & _ROUTE_UP:
        return None
    bits = [int.from_bytes(bytes.fromhex(words[at])[::-1], "big") for at in (1, 7)]
    return ipaddress.IPv4Network((bits[0], bits[1].bit_count()), strict=False)


def _route_of_ipv6(words: list[str]) -> _Network | None:
    flags = int(words[8], 16)
    if int(words[4], 16) or flags & _ROUTE_REJECTS or not flags & _ROUTE_UP:
        return None
    return ipaddress.IPv6Network((int(words[0], 16), int(words[1], 16)), strict=False)


def is_public(text: str) -> bool:
    """True for an address of the internet; one inside another, such as an IPv4 address in IPv6, counts too."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not any(address in one for one in _RELAYS)
    last = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _NAT64 or address.ipv4_mapped is not None:
        return is_public(str(last))
    inner = (address.sixtofour, *(address.teredo or ()), last if (int(address) >> 32) & _ISATAP == 0x5EFE else None)
    if any(one is not None and not is_public(str(one)) for one in inner):
        return False
    return address in _UNICAST and address.is_global and address not in _DOCUMENTS


def plain_host(text: str) -> str:
    """A host as it is compared and looked up: an IP address, or a name in ASCII, small letters and without a dot at its
    end; empty for anything else.

    A name that ends in a number, such as `2130706433` or `0x7f.1`, is what some resolvers read as an address: it is no
    name unless it is a dotted quad.
    """
    host = text.removesuffix(".").lower()
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        if ":" not in host:
            return ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return "" if "%" in host else str(inner or address)
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii").lower()
        except UnicodeError:
            return ""
    is_name = len(host) <= LONGEST_HOST and _NAME.fullmatch(host) is not None
    return host if is_name and not _NUMBER.fullmatch(host.rpartition(".")[2]) else ""


def host_and_port(text: str, usual: int) -> tuple[str, int]:
    """The host and the port of `host`, `host:port`, `[v6]` or `[v6]:port`; `usual` where none is named.

    Raises:
        ValueError: it is none of them.
    """
    named, colon, behind = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    name = named if colon else text
    if ":" in name and not (name.startswith("[") and name.endswith("]")):
        raise ValueError(text[:LONGEST_HOST])
    host = plain_host(name)
    if not host or (colon and not (behind.isascii() and behind.isdigit() and len(behind) <= 5)):
        raise ValueError(text[:LONGEST_HOST])
    port = int(behind) if colon else usual
    if not 0 < port < 1 << 16:
        raise ValueError(text[:LONGEST_HOST])
    return host, port
