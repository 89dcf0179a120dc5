"""First bytes of a client: a CONNECT, a plain HTTP request or SOCKS5. Pure; every malformed one is refused."""

from __future__ import annotations

import re

from tools.web.public_addresses import host_and_port, plain_host

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
VERSIONS = (b"HTTP/1.1", b"HTTP/1.0")
MOST_HEADERS = 200
MOST_BODY = 1 << 46
"""Bytes a request may announce."""
OWN_HEADERS = frozenset({
    b"host",
    b"connection",
    b"proxy-connection",
    b"proxy-authorization",
    b"proxy-authenticate",
    b"keep-alive",
    b"te",
    b"trailer",
    b"upgrade",
})
"""Headers between two neighbours, and the host, which the address of the request decides."""
CHUNKED = -1
"""Length of a body that comes in chunks."""
SOCKS_VERSION = 5
SOCKS_CONNECT = 1
SOCKS_IPV4, SOCKS_NAME, SOCKS_IPV6 = 1, 3, 4


class BadHead(Exception):
    """The first bytes are no request that is served; `status` is the answer in HTTP."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


class ProxyRequest:
    """A client's request; a plain class because `dataclasses` costs the proxy 10 ms."""

    __slots__ = ("forwarded", "headers", "host", "length", "port", "target")

    def __init__(
        self, host: str, port: int, target: bytes = b"", headers: tuple[bytes, ...] = (), length: int = 0
    ) -> None:
        self.host = host
        self.port = port
        self.target = target
        """Method and path of a plain request; empty for a tunnel."""
        self.headers = headers
        """Lines that go on with a plain request."""
        self.length = length
        """Bytes of its body, or `CHUNKED`."""

    @property
    def authority(self) -> str:
        """Host and port as a header has them."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.target and self.port == 80 else f"{name}:{self.port}"

    def head(self, *, absolute: bool, extra: tuple[bytes, ...] = ()) -> bytes:
        """The head of a plain request for the next hop; `absolute` for another proxy."""
        method, _, path = self.target.partition(b" ")
        place = b"http://" + self.authority.encode() + path if absolute and path != b"*" else path
        lines = [method + b" " + place + b" HTTP/1.1", b"Host: " + self.authority.encode(), *self.headers, *extra]
        return b"\r\n".join([*lines, b"Connection: close", b"", b""])


def read_head(head: bytes) -> ProxyRequest:
    """The request whose head these bytes are, up to and with its empty line.

    Raises:
        BadHead: it is no request for a proxy, or one that two readers could understand in two ways.
    """
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if len(lines) > MOST_HEADERS:
        raise BadHead("too many headers", 431)
    words = first.split(b" ")
    if len(words) != 3 or not TOKEN.fullmatch(words[0]) or words[2] not in VERSIONS or not _is_visible(words[1]):
        raise BadHead("this is no HTTP/1.1 request")
    headers = [_header(line) for line in lines]
    if words[0] == b"CONNECT":
        return ProxyRequest(*_authority(words[1], 0))
    if words[1][:8].lower() == b"https://":
        raise BadHead("https goes through CONNECT")
    if words[1][:7].lower() != b"http://":
        raise BadHead("this is Phoenix's proxy; a request names the whole address, as http://host/path")
    authority, path = _split(words[1][7:])
    host, port = _authority(authority, 80)
    named = {part.strip().lower() for name, value in headers if name == b"connection" for part in value.split(b",")}
    kept = tuple(name + b": " + value for name, value in headers if name not in OWN_HEADERS and name not in named)
    return ProxyRequest(host, port, words[0] + b" " + path, kept, _length(headers, named))


def _is_visible(target: bytes) -> bool:
    return all(33 <= byte <= 126 for byte in target)


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not TOKEN.fullmatch(name) or any((byte < 32 and byte != 9) or byte == 127 for byte in value):
        raise BadHead("a header is malformed")
    return name.lower(), value.strip(b" \t")


def _split(rest: bytes) -> tuple[bytes, bytes]:
    """Authority and path of an address behind its scheme."""
    end = min((at for at in (rest.find(sign) for sign in (b"/", b"?", b"#")) if at >= 0), default=len(rest))
    path = rest[end:].partition(b"#")[0]
    return rest[:end], path if path.startswith(b"/") else b"/" + path


def _authority(text: bytes, usual: int) -> tuple[str, int]:
    """Host and port; a `usual` of 0 demands a port."""
    try:
        return host_and_port(text.decode("ascii"), usual)
    except ValueError as error:
        raise BadHead("the address names no host that can be looked up") from error


def _length(headers: list[tuple[bytes, bytes]], named: set[bytes]) -> int:
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1 or named & {b"content-length", b"transfer-encoding"}:
        raise BadHead("the length of the body is named twice")
    if codings:
        if codings != [b"chunked"]:
            raise BadHead("this transfer encoding is not passed on", 501)
        return CHUNKED
    if not lengths:
        return 0
    if not lengths[0].isdigit() or len(lengths[0]) > 15 or int(lengths[0]) > MOST_BODY:
        raise BadHead("the length of the body is no number")
    return int(lengths[0])


def chunk_size(line: bytes) -> int:
    """The size that the first line of a chunk names; extensions are not passed on.

    Raises:
        BadHead: it names none.
    """
    digits = line.removesuffix(b"\r\n").partition(b";")[0].strip(b" \t")
    if not line.endswith(b"\r\n") or not re.fullmatch(rb"[0-9A-Fa-f]{1,12}", digits):
        raise BadHead("a chunk of the body is malformed")
    return int(digits, 16)


def socks_host(kind: int, content: bytes) -> str:
    """The host of a SOCKS request.

    Raises:
        BadHead: it is none.
    """
    if kind == SOCKS_IPV4:
        host = ".".join(map(str, content))
    elif kind == SOCKS_IPV6:
        host = f"[{':'.join(content[at : at + 2].hex() for at in range(0, 16, 2))}]"
    else:
        host = content.decode("ascii", "replace")
    if not (named := plain_host(host)):
        raise BadHead("the request names no host that can be looked up")
    return named
