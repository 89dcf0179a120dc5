"""One page from the web: bounded in bytes, time and redirects, without cookies, from the address that was checked."""

from __future__ import annotations

import asyncio
import importlib
import os
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from msgspec import Struct

from tools.clean import clean_line
from tools.contract import ToolInputError
from tools.failure import ToolFailure
from tools.web.addresses import Reach, WebAddress, admitted_address, parse_url
from tools.web.surroundings import without_connections

if TYPE_CHECKING:
    import httpx2

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
        return await _followed(address, reach)


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


async def _followed(address: WebAddress, reach: Reach) -> FetchedPage | Redirected:
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
        return Redirected(address.url, _joined(address, answer.location))
    return FetchedPage(address.url, answer.media_type, answer.charset, answer.content, answer.status, answer.cut)


async def _exchange(address: WebAddress, reach: Reach, request: HttpAsk) -> HttpAnswer:
    """Send one request to the IP address that was checked, under the host's own name; a proxy gets the name."""
    import httpx2  # noqa: PLC0415 - `fetch` has loaded it

    proxy = reach.proxy(address.scheme, address.host)
    ip = await admitted_address(address, reach, proxied=bool(proxy))
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
        kind = _content_type(response.headers.get("content-type", ""))
        try:
            if response.status_code in _REDIRECTS and (to := response.headers.get("location")):
                return HttpAnswer(response.status_code, *kind, location=to)
            content, cut = await _bounded(response, request.most or MOST_BYTES)
        finally:
            await response.aclose()
    return HttpAnswer(response.status_code, *kind, content, cut, etag=response.headers.get("etag", ""))


async def _bounded(response: httpx2.Response, most: int) -> tuple[bytes, bool]:
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


def _joined(address: WebAddress, to: str) -> str:
    """The target of a redirect; as it was sent where that is no address."""
    try:
        return urljoin(address.url, to)
    except ValueError:
        return to


def _host_header(address: WebAddress) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    default = 443 if address.scheme == "https" else 80
    return host if address.port == default else f"{host}:{address.port}"


def _content_type(header: str) -> tuple[str, str]:
    media_type, _, rest = header.partition(";")
    charset = rest.partition("charset=")[2].split(";")[0].strip(" \"'")
    return media_type.strip().lower()[:100], charset[:40]
