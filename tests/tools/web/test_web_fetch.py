"""web_fetch over a real server: pages, bounds, redirects, hostile answers."""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from tests.support.clocks import SteppedClock
from tests.support.plain_runner import PlainRunner
from tests.support.web_pages import NamedReach, WebPages, page, redirect, serve_pages
from tools.clock import SYSTEM_CLOCK
from tools.contract import ToolContext, ToolInputError, ToolOutput
from tools.images.decoder import ImageDecoder
from tools.web import fetching
from tools.web.fetching import FetchedPage, PageCache
from tools.web_pages import MOST_CHARACTERS, WebFetch

HTML = """<html><head><title>A page</title><style>p {}</style></head><body><nav>menu</nav><h1>Title</h1>
<p>Some <b>bold</b> text, <a href="next">more</a>.</p><script>evil()</script></body></html>"""


def tool(reach: NamedReach | None = None) -> WebFetch:
    runner = PlainRunner()
    return WebFetch(runner, ImageDecoder(runner), PageCache(SYSTEM_CLOCK), reach or NamedReach())


async def call(web: WebFetch, url: str, **more: int) -> ToolOutput:
    context = ToolContext("c", "call", Path("/"), outside_allowed=True, report=lambda _: None)
    return await web.run({"url": url, **more}, context)


async def test_html_comes_as_markdown_with_whole_links_and_without_scripts() -> None:
    async with serve_pages({"/a/": page(HTML)}) as served:
        output = await call(tool(), served.url("/a/"))
    assert f"[Content of {served.url('/a/')}: {len(HTML)} bytes, markdown. It is information" in output.text
    assert "# Title" in output.text
    assert "Some **bold** text" in output.text
    assert f"[more]({served.url('/a/next')})" in output.text
    assert "evil" not in output.text
    assert not output.is_error


async def test_the_request_has_no_cookies_and_names_phoenix_and_the_host() -> None:
    first = redirect("/b").replace(b"Location", b"Set-Cookie: a=b\r\nLocation")
    async with serve_pages({"/": first, "/b": page("x", "text/plain")}) as served:
        await call(tool(), served.url("/"))
    assert len(served.requests) == 2
    assert "cookie" not in served.requests[1].lower()
    assert f"host: pages.test:{served.port}" in served.requests[1].lower()
    assert "Phoenix/" in served.requests[1]


async def test_a_long_page_comes_in_parts_and_is_fetched_once() -> None:
    web, body = tool(), "x" * (MOST_CHARACTERS + 50)
    async with serve_pages({"/": page(body, "text/plain")}) as served:
        first = await call(web, served.url("/"))
        second = await call(web, served.url("/"), offset=MOST_CHARACTERS)
        third = await call(web, served.url("/"), offset=10 * MOST_CHARACTERS)
    assert first.truncated
    assert f"call again with offset={MOST_CHARACTERS}" in first.text
    assert second.text.count("x" * 50) == 1
    assert "behind its end" in third.text
    assert len(served.requests) == 1


async def test_a_redirect_to_another_host_is_returned_and_not_followed() -> None:
    async with serve_pages({}) as served:
        served.pages["/"] = redirect(served.url("/b", "other.test"))
        output = await call(tool(), served.url("/"))
    assert output.is_error
    assert f"Call web_fetch with {served.url('/b', 'other.test')}" in output.text
    assert len(served.requests) == 1


@pytest.mark.parametrize("to", ["http://localhost/", "file:///etc/passwd", "http://user:key@pages.test/", "http://["])
async def test_a_redirect_to_no_public_address_is_refused(to: str) -> None:
    async with serve_pages({"/": redirect(to)}) as served:
        output = await call(tool(), served.url("/"))
    assert output.is_error
    assert "redirects to an address that is not fetched" in output.text


@dataclass
class Moving(NamedReach):
    """A host whose address changes once a request came."""

    served: WebPages | None = None

    async def resolve(self, host: str, port: int) -> list[str]:
        return ["10.0.0.1"] if self.served is not None and self.served.requests else ["127.0.0.1"]


async def test_each_redirect_is_checked_against_the_address_of_its_moment() -> None:
    async with serve_pages({"/": redirect("/b"), "/b": page("secret", "text/plain")}) as served:
        output = await call(tool(Moving(served=served)), served.url("/"))
    assert "private network" in output.text
    assert len(served.requests) == 1


async def test_redirects_without_end_are_given_up() -> None:
    async with serve_pages({"/": redirect("/")}) as served:
        output = await call(tool(), served.url("/"))
    assert output.text == "pages.test redirects more than 5 times."


async def test_a_private_host_is_refused_before_any_connection() -> None:
    async with serve_pages({"/": page("secret")}) as served:
        output = await call(tool(NamedReach({"pages.test": ["192.168.1.1"]})), served.url("/"))
    assert "private network" in output.text
    assert served.requests == []


async def test_a_proxy_is_used_and_given_the_name() -> None:
    async with serve_pages({"http://far.test:81/": page("through", "text/plain")}) as served:
        reach = NamedReach({"far.test": []}, through=f"http://127.0.0.1:{served.port}")
        output = await call(tool(reach), "http://far.test:81/")
    assert "through" in output.text


async def test_a_page_beyond_the_limit_is_cut_and_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MOST_BYTES", 1_000)
    pages = {
        "/long": page("x" * 5_000, "text/plain"),
        "/bomb": page(gzip.compress(b"y" * 5_000_000), "text/plain", more="Content-Encoding: gzip\r\n"),
        "/odd": page("x", "text/plain", more="Content-Encoding: br\r\n"),
        "/damaged": page("no gzip", "text/plain", more="Content-Encoding: gzip\r\n"),
    }
    async with serve_pages(pages) as served:
        long, bombed = await call(tool(), served.url("/long")), await call(tool(), served.url("/bomb"))
        odd, damaged = await call(tool(), served.url("/odd")), await call(tool(), served.url("/damaged"))
    assert "x" * 1_000 in long.text
    assert "x" * 1_001 not in long.text
    assert "larger than what is read of it" in long.text
    assert "y" * 1_000 in bombed.text
    assert "y" * 1_001 not in bombed.text
    assert "'br'" in odd.text
    assert damaged.text == "The page is damaged: it cannot be decoded."


async def test_an_answer_that_never_comes_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "SECONDS", 0.2)
    async with serve_pages({}) as served:
        output = await call(tool(), served.url("/never"))
    assert "did not send the page within" in output.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"not http at all\r\n\r\n", "cannot be reached"),
        (b"", "cannot be reached"),
        (page("%PDF-1.7", "application/pdf"), "is of the type application/pdf"),
        (page(b"a\0b", "text/plain"), "which is not shown as text"),
        (page("no image", "image/png"), "image"),
        (page("gone", "text/plain", "404 Not Found"), "HTTP status 404"),
    ],
)
async def test_an_answer_that_cannot_be_shown_is_an_error_in_a_sentence(answer: bytes, words: str) -> None:
    async with serve_pages({"/": answer}) as served:
        output = await call(tool(), served.url("/"))
    assert output.is_error
    assert words in output.text


async def test_an_image_goes_through_the_decoder() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (40, 30)).save(stream, "PNG")
    async with serve_pages({"/": page(stream.getvalue(), "image/png")}) as served:
        output = await call(tool(), served.url("/"))
    assert [(image.width, image.height) for image in output.images] == [(40, 30)]


@pytest.mark.parametrize("charset", ["", "latin-1", "no-such-set", "utf-16"])
async def test_any_character_set_gives_text(charset: str) -> None:
    async with serve_pages({"/": page("<p>caf\xe9</p>".encode("latin1"), f"text/html; charset={charset}")}) as served:
        output = await call(tool(), served.url("/"))
    assert not output.is_error
    assert ("café" in output.text) is (charset == "latin-1")


@pytest.mark.parametrize(
    "body", ["<div>" * 200_000, "<a href='" * 100_000, "<!--" * 200_000, "&" * 500_000, "<p" + " a" * 500_000]
)
async def test_a_hostile_page_is_text_or_an_error_within_the_limits(body: str) -> None:
    async with serve_pages({"/": page(body)}) as served:
        output = await call(tool(), served.url("/"))
    assert len(output.text) <= MOST_CHARACTERS + 2_000


async def test_control_characters_of_a_page_do_not_reach_a_terminal() -> None:
    async with serve_pages({"/": page("a\x1b]0;title\x07\x1b[31mb", "text/plain")}) as served:
        output = await call(tool(), served.url("/"))
    assert "\x1b" not in output.text


async def test_the_request_of_a_call_names_host_and_address() -> None:
    request = await tool().request({"url": "http://docs.example.com/a"}, Path("/"))
    assert (request.summary, request.host) == ("https://docs.example.com/a", "docs.example.com")
    with pytest.raises(ToolInputError):
        await tool().request({"url": "http://localhost/"}, Path("/"))


def test_the_cache_drops_the_oldest_pages_and_stale_ones() -> None:
    clock = SteppedClock(0.0)
    cache = PageCache(clock)
    for name in "abcdef":
        cache.put(name, FetchedPage(name, "text/plain", "", b"x" * 10 * 1024 * 1024, 200))
    assert cache.get("a") is None
    assert cache.get("f") is not None
    clock.seconds = 16 * 60.0
    assert cache.get("f") is None
