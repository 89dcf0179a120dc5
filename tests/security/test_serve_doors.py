"""SECURITY V11, and the doors of `phoenix serve`: who gets in from other pages, ports, names and programs."""

from __future__ import annotations

import asyncio
import hmac
import sys
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.terminal.serving.doors import PageAddress, refusal, same
from phoenix_tui.terminal.serving.server import MOST_CELLS, limit_cells
from tests.support.cli import phoenix_in
from tests.support.serving import Served, serving, tab, visitor

ADDRESS = PageAddress("127.0.0.1", 8130, "token")
OWN = {"Host": "127.0.0.1:8130"}
FROM_HERE = {**OWN, "Origin": "http://127.0.0.1:8130"}
ODD_COOKIES = (b"\xff\xfe", "ключ".encode(), b"\xed\xa0\x80", b'"\\377"', b"a" * 7000, b"", b";;;=", b"\\u0000")


def test_our_own_pages_are_let_in() -> None:
    assert refusal(ADDRESS, "/ws/key", FROM_HERE) == ""
    assert refusal(ADDRESS, "/", {**OWN, "Sec-Fetch-Site": "none"}) == ""
    assert refusal(ADDRESS, "/static/js/textual.js", {**FROM_HERE, "Sec-Fetch-Site": "same-origin"}) == ""


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "rebound.example:8130"},
        {"Host": "rebound.example", "Origin": "http://rebound.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:8131"},
        {"Host": "localhost:8130"},
        {"Host": "127.0.0.1:8130.rebound.example"},
        {"Host": "127.0.0.1:8130@rebound.example"},
        {"Host": "x" * 100_000},
        {**OWN, "Origin": "null"},
        {**OWN, "Origin": ""},
        {**OWN, "Origin": "http://127.0.0.1"},
        {**OWN, "Origin": "http://127.0.0.1:9999"},
        {**OWN, "Origin": "https://127.0.0.1:8130"},
        {**OWN, "Origin": "http://127.0.0.1:8130.example"},
        {**OWN, "Origin": "http://127.0.0.1:8130/"},
        {**OWN, "Origin": "http://ключ:8130"},
        {**OWN, "Origin": "\udcff"},
        {**OWN, "Sec-Fetch-Site": "cross-site"},
        {**OWN, "Sec-Fetch-Site": "same-site"},
        {**FROM_HERE, "Sec-Fetch-Site": "same-site"},
    ],
)
def test_foreign_pages_ports_and_names_are_refused(headers: dict[str, str]) -> None:
    for path in ("/", "/ws", "/ws/key", "/download/key", "/static/js/textual.js"):
        assert refusal(ADDRESS, path, headers), path


@pytest.mark.parametrize("path", ["/ws", "/ws/key", "/download/key"])
def test_what_gives_out_more_than_the_page_needs_to_be_asked_for_by_a_page(path: str) -> None:
    assert refusal(ADDRESS, path, OWN)


@pytest.mark.parametrize(
    ("address", "host", "origin"),
    [
        (PageAddress("::1", 80, "t"), "[::1]", "http://[::1]"),
        (PageAddress("127.0.0.1", 80, "t"), "127.0.0.1", "http://127.0.0.1"),
        (PageAddress("127.0.0.1", 8130, "t", "https://box.lan/phoenix/"), "box.lan", "https://box.lan"),
        (PageAddress("127.0.0.1", 8130, "t", "https://Box.lan:443"), "box.lan", "https://box.lan"),
        (PageAddress("127.0.0.1", 8130, "t", "https://box.lan:444"), "127.0.0.1:8130", "https://box.lan:444"),
    ],
)
def test_a_proxy_and_the_usual_ports_are_let_in(address: PageAddress, host: str, origin: str) -> None:
    assert refusal(address, "/ws/k", {"Host": host, "Origin": origin}) == ""


@given(st.text(), st.text(st.characters(codec="ascii"), min_size=1))
def test_comparing_takes_any_text(text: str, secret: str) -> None:
    assert same(text, secret) is (text == secret)
    assert same("\ud800" + text, secret) is False


@given(st.one_of(st.integers(), st.none(), st.text(), st.floats(), st.lists(st.integers())))
def test_a_tab_has_a_size_that_can_be_drawn(cells: object) -> None:
    assert 1 <= limit_cells(cells) <= MOST_CELLS


def test_what_one_port_is_told_opens_no_other() -> None:
    other = PageAddress("127.0.0.1", 8131, "token")
    assert ADDRESS.cookie_name != other.cookie_name
    assert len({ADDRESS.cookie, other.cookie, ADDRESS.page_key, other.page_key, ADDRESS.token}) == 5
    assert ADDRESS.page_key == hmac.digest(b"token", b"page 8130", "sha256").hex()
    assert "token" not in repr(ADDRESS)


async def test_the_doors_of_a_running_server(tmp_path: Path) -> None:
    async with serving(phoenix_in(tmp_path)) as served:
        await _invitation_leaves_nothing_behind(served)
        await _cookie_alone_opens_no_tab(served)
        await _sockets_from_elsewhere_are_refused(served)
        for cookie in ODD_COOKIES:
            assert (await _status_of(served, b"Cookie: phoenix_%d=%s" % (served.port, cookie))).startswith(b"4")
        assert await _status_of(served, b"X-Long: " + b"a" * 100_000) in {b"400", b"431"}
        assert await _status_of(served, b"Host: twice") in {b"400", b"403"}
        async with tab(served) as socket:
            for nonsense in ("", "{}", "[]", "[" * 5000, '["resize",{"width":"x"}]', '["stdin",5]', "[1]"):
                await socket.send_str(nonsense)
            async with asyncio.timeout(45):
                while (await socket.receive()).type is aiohttp.WSMsgType.BINARY:
                    pass
            assert socket.close_code == 1008
    assert served.errors == b""


async def _invitation_leaves_nothing_behind(served: Served) -> None:
    async with visitor(served) as (session, key):
        page = await session.get(served.address)
        assert page.status == 200
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        text = await page.text()
        assert "localStorage" in text
        assert key not in text
        cookies = [(cookie.key, cookie.value) for cookie in session.cookie_jar]
        assert [name for name, _ in cookies] == [f"phoenix_{served.port}"]
        token = served.invitation.partition("token=")[2]
        assert {token, key}.isdisjoint(value for _, value in cookies)


async def _cookie_alone_opens_no_tab(served: Served) -> None:
    """The listener of another port is sent the cookie by the browser; it can forge every header."""
    async with visitor(served) as (session, _):
        for path in ("ws", "ws/", "ws/none", "ws/" + "0" * 64, "ws/%ff%fe", "ws/ключ"):
            refused = await session.get(f"{served.address}{path}", headers={"Origin": served.origin})
            assert refused.status in {403, 404}, path


async def _sockets_from_elsewhere_are_refused(served: Served) -> None:
    for headers in ({}, {"Origin": "http://elsewhere.example"}, {"Origin": f"http://127.0.0.1:{served.port + 1}"}):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with tab(served, headers):
                pass
        assert refused.value.status == 403


async def _status_of(served: Served, header: bytes) -> bytes:
    """Status of the answer to a request with this header, byte by byte."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\nConnection: close\r\n\r\n" % (served.port, header))
    try:
        answer = await asyncio.wait_for(reader.readline(), 45)
    finally:
        writer.close()
    return answer.split(b" ")[1]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
async def test_no_shell_stands_between_the_server_and_a_tab(tmp_path: Path) -> None:
    async with serving(phoenix_in(tmp_path)) as served, tab(served):
        assert children(served.process.pid) == {"phoenix", "phoenix-zygote"}


def children(pid: int) -> set[str]:
    """The names of what a process has started itself."""
    pids = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return {Path(f"/proc/{child}/comm").read_text("ascii").strip() for child in pids}
