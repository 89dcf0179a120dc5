"""Public addresses and host names in one spelling; imports nothing heavy, since the proxy of commands uses it too."""

from __future__ import annotations

import ipaddress
import re
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
