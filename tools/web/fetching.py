"""One page from the web: public addresses alone (docs/security.md), bounded in bytes, time and redirects."""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import os
import socket
import sys
import zlib
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec
from msgspec import Struct, field

from tools.arguments import ToolFailure
from tools.clean import clean, clean_line
from tools.clock import Clock
from tools.contract import HELPER_SANDBOX, Command, ProcessRunner, ToolInputError
from tools.web.public_addresses import is_outside
from tools.web.surroundings import without_connections

if TYPE_CHECKING:
    import httpx2


LONGEST_URL: Final = 2_000
LOOKUP_SECONDS: Final = 10.0
_SHORT: Final = 200
"""Characters of an address that an error repeats."""


class Reach(Protocol):
    """Knows the addresses of hosts, and which may be asked."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """Addresses of a host; raises OSError where it has none."""
        ...

    def admits(self, address: str) -> bool:
        """True where a connection to an address is allowed."""
        ...

    def proxy(self, scheme: str, host: str) -> str:
        """URL of the proxy for a host, empty without: it looks up the name itself."""
        ...


class PublicReach(Struct, frozen=True):
    """The internet, without the networks of this machine and its surroundings."""

    async def resolve(self, host: str, port: int) -> list[str]:
        """Ask the system's resolver."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def admits(self, address: str) -> bool:
        """True for a public address outside of this machine and its networks."""
        return is_outside(address)

    def proxy(self, scheme: str, host: str) -> str:
        """Read the environment, as commands of the user do."""
        from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 5 ms, not for every start

        proxies = getproxies()
        found = proxies.get(scheme) or proxies.get("all") or ""
        return "" if not found or proxy_bypass(host) else found


class WebAddress(Struct, frozen=True):
    """A URL that may be asked, once its host is resolved."""

    url: str
    """Normalized, with a host in ASCII and no fragment."""
    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        """Host without the prefix by which sites send their visitors back and forth."""
        return self.host.removeprefix("www.")


def parse_url(text: str) -> WebAddress:
    """The address in `text`; http becomes https, except with a port of its own.

    Raises:
        ToolInputError: it is no web address, or names a host that can only be here.
    """
    shown = text[:_SHORT]
    if len(text) > LONGEST_URL or any(ord(character) <= 32 or ord(character) == 127 for character in text):
        raise ToolInputError(f"the url must be one address of at most {LONGEST_URL:,} characters without spaces.")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise ToolInputError(f"'{shown}' is no valid address; give one such as https://example.com/page.") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise ToolInputError(f"'{shown}' is no web address; give one that begins with https://.")
    if parts.username is not None or parts.password is not None:
        raise ToolInputError("an address with a user name or a password is not fetched; leave them out.")
    scheme = parts.scheme if port else "https"
    ascii_host = _check_host(host)
    name = f"[{ascii_host}]" if ":" in ascii_host else ascii_host
    place = f"{name}:{port}" if port and port != _default(scheme) else name
    whole = urlunsplit((scheme, place, parts.path or "/", parts.query, ""))
    return WebAddress(whole, scheme, ascii_host, port or _default(scheme))


async def admit_address(address: WebAddress, reach: Reach, *, proxied: bool = False) -> str:
    """The IP address to connect to; one that is not public refuses the host, whatever others it has.

    Behind a proxy (`proxied`) a name that only the proxy can look up is admitted, as the empty address.

    Raises:
        ToolFailure: the host is unknown, or not public.
    """
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            found = await reach.resolve(address.host, address.port)
    except (OSError, UnicodeError):
        found = []
    if not found and proxied:
        return ""
    if not found:
        raise ToolFailure(f"The host {address.host} is unknown, or its name cannot be looked up here.")
    if not all(reach.admits(one) for one in found):
        raise ToolFailure(
            f"{address.host} is an address of this machine or a private network, which is never fetched; "
            "use a command where the user wants that."
        )
    return found[0]


def _check_host(host: str) -> str:
    """The host in ASCII, lower case, without a dot at its end."""
    host = host.rstrip(".").lower()
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        name = host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError as error:
        raise ToolInputError(f"'{host[:_SHORT]}' is no host name.") from error
    if "." not in name or name.endswith((".local", ".localhost", ".internal", ".home.arpa")):
        raise ToolInputError(f"'{host[:_SHORT]}' is a host of this machine or its network, which is never fetched.")
    return name


def _default(scheme: str) -> int:
    return 443 if scheme == "https" else 80


MOST_BYTES: Final = 10 * 1024 * 1024
"""Bytes of a page, decoded."""
SECONDS: Final = 30.0
"""Time for a page with all its redirects."""
MOST_REDIRECTS: Final = 5
USER_AGENT: Final = "Phoenix/1 (terminal agent; fetches pages on request of its user)"
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_ACCEPT: Final = "text/html,text/markdown,text/plain,application/json,image/*;q=0.8,*/*;q=0.1"
_GZIP: Final = 16 + zlib.MAX_WBITS
_WINDOWS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


class FetchedPage(Struct, frozen=True):
    """The answer of a server."""

    url: str
    """Address after redirects on the same host."""
    media_type: str
    charset: str
    content: bytes
    status: int
    cut: bool = False
    """True where the page has more bytes than are read."""


class HttpAsk(Struct, frozen=True):
    """A request besides its address."""

    method: str = "GET"
    headers: dict[str, str] = {}
    content: bytes = b""
    most: int = 0
    """Bytes of the answer, decoded; 0: as many as of a page."""


class HttpAnswer(Struct, frozen=True):
    """The answer to one request: a redirect has no content."""

    status: int
    media_type: str
    charset: str
    content: bytes = b""
    cut: bool = False
    location: str = ""
    """Address of a redirect as it was sent."""
    etag: str = ""


class Redirected(Struct, frozen=True):
    """A redirect to another host, which is not followed."""

    url: str
    to: str


async def fetch(address: WebAddress, reach: Reach) -> FetchedPage | Redirected:
    """Fetch a page.

    Raises:
        ToolFailure: it cannot be had, in a sentence.
    """
    async with _bounds(address, "the page"):
        return await _follow(address, reach)


async def ask(address: WebAddress, reach: Reach, request: HttpAsk) -> HttpAnswer:
    """Ask a service once, within the bounds of a page; a redirect is not followed.

    Raises:
        ToolFailure: it cannot be asked, in a sentence.
    """
    async with _bounds(address, "an answer"):
        return await _exchange(address, reach, request)


@asynccontextmanager
async def _bounds(address: WebAddress, what: str) -> AsyncGenerator[None]:
    await asyncio.to_thread(importlib.import_module, "httpx2")
    import httpx2  # noqa: PLC0415 - 110 ms, in the thread above

    try:
        async with asyncio.timeout(SECONDS):
            yield
    except TimeoutError:
        raise ToolFailure(f"{address.host} did not send {what} within {SECONDS:.0f} s.") from None
    except (OSError, ValueError, ImportError) as error:  # of a variable: the client could not be made
        raise ToolFailure(without_connections(error, os.environ)) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = clean_line(str(error)).strip() or type(error).__name__
        raise ToolFailure(f"{address.host} cannot be reached: {reason[:300]}") from error


async def _follow(address: WebAddress, reach: Reach) -> FetchedPage | Redirected:
    for _ in range(MOST_REDIRECTS + 1):
        answer = await _ask(address, reach)
        if isinstance(answer, FetchedPage):
            return answer
        try:
            target = parse_url(answer.to)
        except ToolInputError as error:
            raise ToolFailure(f"{address.host} redirects to an address that is not fetched: {error}") from error
        if target.origin != address.origin:
            return Redirected(address.url, target.url)
        address = target
    raise ToolFailure(f"{address.host} redirects more than {MOST_REDIRECTS} times.")


async def _ask(address: WebAddress, reach: Reach) -> FetchedPage | Redirected:
    answer = await _exchange(address, reach, HttpAsk(headers={"Accept": _ACCEPT}))
    if answer.location:
        return Redirected(address.url, _join_redirect(address, answer.location))
    return FetchedPage(address.url, answer.media_type, answer.charset, answer.content, answer.status, answer.cut)


async def _exchange(address: WebAddress, reach: Reach, request: HttpAsk) -> HttpAnswer:
    """Send one request to the IP address that was checked, under the host's own name; a proxy gets the name."""
    import httpx2  # noqa: PLC0415 - `fetch` has loaded it

    proxy = reach.proxy(address.scheme, address.host)
    ip = await admit_address(address, reach, proxied=bool(proxy))
    place = httpx2.URL(address.url) if proxy else httpx2.URL(address.url).copy_with(host=ip)
    headers = {"Host": _host_header(address), "User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **request.headers}
    context = await asyncio.to_thread(httpx2.create_ssl_context)
    async with httpx2.AsyncClient(
        verify=context, trust_env=False, proxy=proxy or None, follow_redirects=False, timeout=SECONDS
    ) as client:
        built = client.build_request(
            request.method,
            place,
            headers=headers,
            content=request.content or None,
            extensions={"sni_hostname": address.host},
        )
        response = await client.send(built, stream=True)
        media_type, _, rest = response.headers.get("content-type", "").partition(";")
        charset = rest.partition("charset=")[2].split(";")[0].strip(" \"'")
        kind = media_type.strip().lower()[:100], charset[:40]
        try:
            if response.status_code in _REDIRECTS and (to := response.headers.get("location")):
                return HttpAnswer(response.status_code, *kind, location=to)
            content, cut = await _read_bounded(response, request.most or MOST_BYTES)
        finally:
            await response.aclose()
    return HttpAnswer(response.status_code, *kind, content, cut, etag=response.headers.get("etag", ""))


async def _read_bounded(response: httpx2.Response, most: int) -> tuple[bytes, bool]:
    """The decoded content up to `most` bytes, and True where there is more."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower() or "identity"
    if encoding != "identity" and encoding not in _WINDOWS:
        raise ToolFailure(f"The page is encoded as '{encoding[:40]}', which was not asked for.")
    decoder = zlib.decompressobj(_WINDOWS[encoding]) if encoding in _WINDOWS else None
    content = bytearray()
    async for piece in response.aiter_raw():
        room = most - len(content)
        try:
            content += decoder.decompress(piece, room + 1) if decoder is not None else piece[: room + 1]
        except zlib.error as error:
            raise ToolFailure("The page is damaged: it cannot be decoded.") from error
        if len(content) > most:
            return bytes(content[:most]), True
    return bytes(content), False


def _join_redirect(address: WebAddress, to: str) -> str:
    """The target of a redirect; as it was sent where that is no address."""
    try:
        return urljoin(address.url, to)
    except ValueError:
        return to


def _host_header(address: WebAddress) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    default = 443 if address.scheme == "https" else 80
    return host if address.port == default else f"{host}:{address.port}"


_HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class ChosenReach(PublicReach, frozen=True):
    """The host of a setting, wherever it is."""

    def admits(self, address: str) -> bool:
        """True: the user chose it."""
        return True

    def proxy(self, scheme: str, host: str) -> str:
        """Read the environment; a host of this machine has no proxy."""
        return "" if host in _HERE else super().proxy(scheme, host)


def read_chosen_address(url: str) -> WebAddress:
    """The address of a setting as it is written: any host, and http where the user wrote it."""
    parts = urlsplit(url)
    default = 443 if parts.scheme == "https" else 80
    return WebAddress(url, parts.scheme, parts.hostname or "", parts.port or default)


KEPT_SECONDS: Final = 15 * 60.0
MOST_KEPT_BYTES: Final = 50 * 1024 * 1024


_Kept: TypeAlias = tuple[float, FetchedPage]
"""Monotonic time of the fetch, and the page."""


class PageCache(Struct, eq=False):
    """Pages by the address that was asked; the oldest go first."""

    clock: Clock
    _pages: OrderedDict[str, tuple[float, FetchedPage]] = field(
        default_factory=OrderedDict[str, tuple[float, FetchedPage]]
    )
    _bytes: int = 0

    def get(self, url: str) -> FetchedPage | None:
        """A page that is still fresh."""
        kept = self._pages.get(url)
        if kept is None:
            return None
        if self.clock.monotonic() - kept[0] > KEPT_SECONDS:
            self._drop(url)
            return None
        return kept[1]

    def put(self, url: str, page: FetchedPage) -> None:
        """Keep a page; older ones make room."""
        if url in self._pages:
            self._drop(url)
        self._pages[url] = (self.clock.monotonic(), page)
        self._bytes += len(page.content)
        while self._bytes > MOST_KEPT_BYTES:
            self._drop(next(iter(self._pages)))

    def _drop(self, url: str) -> None:
        _, page = self._pages.pop(url)
        self._bytes -= len(page.content)


TEXT_SECONDS: Final = 15.0
_MOST_BYTES: Final = 16 * 1024 * 1024
_WORKER: Final = Path(__file__).parent / "worker.py"
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS: Final = frozenset({"application/json", "application/xml", "application/javascript", "application/x-yaml"})
_TEXT_ENDS: Final = ("+json", "+xml", "/yaml")
_BEGINNINGS: Final = (b"<!doctype html", b"<html")


class PageText(Struct, frozen=True):
    """Text of a page, cleaned."""

    text: str
    kind: str
    """markdown, text, or the media type of what is shown as it is."""
    title: str = ""


class _Answer(Struct):
    error: str = ""
    kind: str = "text"
    title: str = ""


def is_image(page: FetchedPage) -> bool:
    """True for a media type that the image decoder may know."""
    return page.media_type.startswith("image/") and page.media_type != "image/svg+xml"


async def page_text(page: FetchedPage, runner: ProcessRunner) -> PageText:
    """Turn a page into text.

    Raises:
        ToolFailure: it is no text.
    """
    kind = page.media_type
    if kind in _HTML or (not kind and page.content[:200].lstrip().lower().startswith(_BEGINNINGS)):
        return await _from_html(page, runner)
    is_text = kind.startswith("text/") or kind in _TEXTS or kind.endswith(_TEXT_ENDS)
    if not is_text or b"\0" in page.content[:8192]:
        raise ToolFailure(
            f"{page.url} is of the type {kind or 'unknown'} ({len(page.content):,} bytes), which is not shown as text; "
            "download it with a command where the user wants that."
        )
    return PageText(clean(_decode(page)), kind)


async def _from_html(page: FetchedPage, runner: ProcessRunner) -> PageText:
    command = Command(
        argv=(sys.executable, "-I", str(_WORKER)),
        working_dir=_WORKER.parent,
        timeout=TEXT_SECONDS,
        stdin=page.charset.encode("ascii", "replace") + b"\n" + page.url.encode() + b"\n" + page.content,
        keep_head=_MOST_BYTES,
        keep_tail=0,
        sandbox=HELPER_SANDBOX,
    )
    try:
        finished = await runner.run(command)
    except OSError as error:
        raise ToolFailure(f"The page cannot be turned into text: {error.strerror or error}.") from error
    line, _, text = finished.captured.head.partition(b"\n")
    if finished.exit_code != 0 or finished.captured.dropped:
        raise ToolFailure("The page cannot be turned into text within the limits of time and memory.")
    try:
        answer = msgspec.json.decode(line, type=_Answer)
    except msgspec.DecodeError as error:
        raise ToolFailure("The page cannot be turned into text.") from error
    if answer.error:
        raise ToolFailure(answer.error)
    return PageText(clean(text.decode("utf-8", "replace")), answer.kind, clean(answer.title))


def _decode(page: FetchedPage) -> str:
    try:
        return page.content.decode(page.charset or "utf-8", "replace")
    except LookupError:
        return page.content.decode("utf-8", "replace")
