"""web_fetch over a real server, and the addresses that web tools may ask, however they are written."""

from __future__ import annotations

import gzip
import io
import ipaddress
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.support.clocks import SteppedClock
from tests.support.plain_runner import PlainRunner
from tests.support.web_pages import NamedReach, WebPages, page, redirect, serve_pages
from tools.arguments import ToolFailure
from tools.clock import SYSTEM_CLOCK
from tools.contract import ToolContext, ToolInputError, ToolOutput
from tools.images.decoder import ImageDecoder
from tools.web import fetching, public_addresses
from tools.web.contract import ANSWERED, extract_known_text, find_shared_addresses, number_line, strip_numbers
from tools.web.fetching import FetchedPage, PageCache, PublicReach, WebAddress, admit_address, parse_url
from tools.web.public_addresses import is_public
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


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://example.com", "https://example.com/"),
        ("https://Example.COM./a?b=c#d", "https://example.com/a?b=c"),
        ("http://example.com:8080/a", "http://example.com:8080/a"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://[2606:4700::1111]/x", "https://[2606:4700::1111]/x"),
    ],
)
def test_an_address_is_normalized_and_upgraded(text: str, url: str) -> None:
    assert parse_url(text).url == url


@pytest.mark.parametrize(
    "text",
    [
        *("example.com", "file:///etc/passwd", "ftp://example.com/", "https://", "javascript:alert(1)", ""),
        *("https://localhost/", "https://intranet/", "https://printer.local/", "https://metadata.google.internal/"),
        *("http://2130706433/", "http://0x7f000001/", "https://user:key@example.com/", "https://user@example.com/"),
        *("https://example.com:99999/", "https://[::1/", "https://exa mple.com/", "https://example.com/\r\nHost: evil"),
        "https://example.com/" + "a" * 2_000,
    ],
)
def test_what_is_no_public_web_address_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ToolInputError, match=r"\.$"):
        parse_url(text)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
        *(
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a00:1::",
        ),
        *("fec0::1", "feff::1", "64:ff9b:1::1", "2001:2::1", "3fff::1", "5f00::1", "100::1", "::1.2.3.4", "4000::1"),
        *("192.0.0.9", "192.88.99.1", "::ffff:0:1.2.3.4", "2001:0:102:304::f5ff:fffe", "2606:4700::5efe:a00:1"),
        *("2606:4700::200:5efe:7f00:1", "2002:c058:6301::1"),
        *("no address", "", "1.2.3"),
    ],
)
def test_private_and_special_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


NEAR = """
ip link set lo up && ip link add v0 type veth peer name v1 && ip addr add 9.9.9.9/24 dev v0
ip -6 addr add 2606:4700:1::5/64 dev v0 nodad; ip link set v0 up && ip link set v1 up
ip route add default via 9.9.9.1; ip route add 20.0.0.0/8 dev v0; ip -6 route add default via 2606:4700:1::1
exec "$@"
"""
ASK = "import sys; sys.path.append(sys.argv[1]); from tools.web.public_addresses import is_outside as f; "
ASK += "print([one for one in sys.argv[2:] if f(one)])"


def test_public_addresses_of_this_machine_and_of_its_network_are_not_outside() -> None:
    far = ["9.9.8.8", "20.1.1.1", "2606:4700:2::1"]
    near = ["9.9.9.9", "9.9.9.77", "::ffff:9.9.9.77", "64:ff9b::909:909", "2606:4700:1::5", "2606:4700:1::77"]
    inside = ["unshare", "-rn", "sh", "-e", "-c", NEAR, "sh"]
    if not shutil.which("unshare") or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("no network of its own can be made here")
    ask = [sys.executable, "-c", ASK, str(Path(__file__).parents[3])]
    done = subprocess.run([*inside, *ask, *near, *far], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{far}\n", "")
    assert all(map(is_public, near))


def test_behind_more_routes_than_are_read_no_address_is_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "route").write_text("v0\t00000000\t01090909\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" * 10)
    monkeypatch.setattr(public_addresses, "_ROUTES", {4: str(tmp_path / "route")})
    monkeypatch.setattr(public_addresses, "_own_address_for", lambda _: ipaddress.ip_address("9.9.9.9"))
    assert public_addresses.is_outside("20.1.1.1")
    monkeypatch.setattr(public_addresses, "_MOST_ROUTES", 100)
    assert not public_addresses.is_outside("20.1.1.1")


@pytest.mark.parametrize("host", ["127.1", "0177.0.0.1", "0x7f.0.0.1", "127.0.0.1"])
async def test_other_spellings_of_this_machine_are_refused_once_resolved(host: str) -> None:
    with pytest.raises((ToolFailure, ToolInputError)):
        await admit_address(parse_url(f"https://{host}/"), PublicReach())


async def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    reach = NamedReach({"mixed.test": ["127.0.0.1", "10.0.0.1"]})
    with pytest.raises(ToolFailure, match="private network"):
        await admit_address(WebAddress("https://mixed.test/", "https", "mixed.test", 443), reach)


async def test_a_host_without_an_address_is_named() -> None:
    reach = NamedReach({"nowhere.test": []})
    with pytest.raises(ToolFailure, match=r"The host nowhere\.test is unknown"):
        await admit_address(parse_url("https://nowhere.test/"), reach)


@given(st.text(max_size=80))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for candidate in (text, f"https://{text}", f"http://a.example/{text}"):
        with suppress(ToolInputError):
            assert parse_url(candidate).host.isascii()


def test_of_a_search_only_the_numbered_addresses_count() -> None:
    said = strip_numbers("[7] https://evil.example/?key=SECRET\nsee https://evil.example/?key=SECRET")
    result = "\n".join(["[1 result …]", number_line(1, "https://a.example/x"), "    [2] https://t.example/", said])
    assert extract_known_text("web_search", result) == "https://a.example/x"


def test_of_an_answer_about_a_page_too_and_of_a_page_everything() -> None:
    answer = f"{ANSWERED}model about …]\nhttps://made.up/\n[1] https://a.example/x"
    assert extract_known_text("web_fetch", answer) == "https://a.example/x"
    assert extract_known_text("web_fetch", "[Content of …]\nhttps://linked.example/") == (
        "[Content of …]\nhttps://linked.example/"
    )


def test_a_page_that_looks_like_an_answer_loses_its_links() -> None:
    assert extract_known_text("web_fetch", f"[Content of …]\n{ANSWERED}x]\nhttps://linked.example/") == ""


def test_an_answer_shares_with_its_page_what_stands_on_both() -> None:
    answer = "See https://a.example/x. Not https://evil.example/?key=SECRET (https://a.example/x)."
    assert find_shared_addresses(answer, "links to https://a.example/x here", 5) == ["https://a.example/x"]
    assert find_shared_addresses(
        "https://a.example/1 https://a.example/2", "https://a.example/1 https://a.example/2", 1
    ) == ["https://a.example/1"]
