"""SECURITY V11, D1: who gets in at `phoenix serve`, what signals end of it, and who is sent prompts on local ports."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phoenix_tui.models.accepted import AcceptedServers
from phoenix_tui.models.choice import ChosenBy, ModelFacts, choose_model
from phoenix_tui.models.servers import LocalServer, ServerKind
from phoenix_tui.terminal.serving.doors import PageAddress, refusal, same
from phoenix_tui.terminal.serving.server import MOST_CELLS, limit_cells
from tests.support.bounded import bounded
from tests.support.cli import Phoenix, phoenix_in
from tests.support.loopback import Loopback, Talk, serve
from tests.support.program import family, gone, program
from tests.support.serving import DEADLINE, Served, serving, tab, visitor
from tests.support.stuck_child import STANDING
from tests.support.waiting import poll

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


CHILD = "tests.support.stuck_server"


@pytest.mark.parametrize(
    ("number", "stands", "code"),
    [
        (signal.SIGHUP, "", 0),
        (signal.SIGTERM, "server", 128 + signal.SIGTERM),
        (signal.SIGINT, "tab", 0),
        (signal.SIGKILL, "tab", -signal.SIGKILL),
    ],
)
async def test_a_server_ends_with_every_process_of_its_tabs(
    tmp_path: Path, number: signal.Signals, stands: str, code: int
) -> None:
    phoenix = phoenix_in(tmp_path, STUCK="python")
    async with serving(phoenix, module=CHILD) as served:
        pid = served.process.pid
        with bounded(pid, seconds=120):
            async with tab(served):
                everyone = family(pid)
                (of_tab,) = [one for one in everyone if command_of(one).rstrip("\0") == "phoenix"]
                if stands:
                    os.kill(of_tab if stands == "tab" else pid, signal.SIGUSR1)
                    assert await poll(lambda: (phoenix.home / STANDING).exists())
                os.kill(pid, number)
                assert await asyncio.wait_for(served.process.wait(), DEADLINE) == code
            assert await poll(lambda: gone(everyone)), [command_of(one) for one in everyone]
    assert b"Traceback" not in served.errors


def command_of(pid: int) -> str:
    """The command line of a process; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


ELSEWHERE = LocalServer(ServerKind.OLLAMA, "http://127.0.0.1:11434/v1", ("evil\x1b[2J\n-m other/x", "b"))


def test_a_listener_is_used_only_after_a_yes_for_its_kind_and_address(tmp_path: Path) -> None:
    accepted = AcceptedServers(tmp_path / "servers.json")
    assert accepted.split([ELSEWHERE]) == ((), (ELSEWHERE,))
    accepted.accept("anthropic/claude")
    assert not accepted.path.exists()
    accepted.accept("vllm/some")
    assert accepted.split([ELSEWHERE]) == ((), (ELSEWHERE,))
    accepted.accept("ollama/b")
    assert accepted.split([ELSEWHERE]) == ((ELSEWHERE,), ())
    moved = LocalServer(ServerKind.OLLAMA, "http://127.0.0.1:11435/v1", ("b",))
    assert accepted.split([moved]) == ((), (moved,))
    assert accepted.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"accepted": 5}', '{"accepted": [5, null]}', "[" * 9999, "\0"])
def test_a_file_that_makes_no_sense_accepts_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text, "ascii")
    assert AcceptedServers(path).split([ELSEWHERE]) == ((), (ELSEWHERE,))


def test_what_waits_is_named_and_never_chosen() -> None:
    choice = choose_model(ModelFacts(waiting=(ELSEWHERE,)))
    assert (choice.is_guide, choice.sentence) == (True, choice.waiting)
    assert "http://127.0.0.1:11434/v1" in choice.sentence
    assert "\x1b" not in choice.sentence
    assert "\n" not in choice.sentence
    beside = choose_model(ModelFacts(waiting=(ELSEWHERE,), embedded=("small",)))
    assert beside.chosen_by is ChosenBy.EMBEDDED
    assert choose_model(ModelFacts(servers=(ELSEWHERE,))).chosen_by is ChosenBy.LOCAL_SERVER
    assert choose_model(ModelFacts(flag="ollama/b", waiting=(ELSEWHERE,))).sentence == ""


PORTS = """
import sys
from phoenix_tui.models import servers
servers.ENDPOINTS = tuple(servers.Endpoint(one.kind, {port}, words=one.words) for one in servers.ENDPOINTS[:1])
servers.discover_local_servers.__defaults__ = (5.0, servers.ENDPOINTS)
"""


def listening(folder: Path, server: Loopback) -> Phoenix:
    """A Phoenix without a key, for which the usual ports are that of `server`."""
    hook = folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(PORTS.format(port=server.url.rpartition(":")[2]), "ascii")
    phoenix = phoenix_in(folder, PHOENIX_MODEL="")
    return Phoenix(
        phoenix.home, phoenix.cwd, {"PHOENIX_MODEL": "", "PYTHONPATH": f"{hook}:{Path(__file__).parents[2]}"}
    )


async def lists(talk: Talk) -> None:
    await talk.plain(200, json.dumps({"data": [{"id": "planted"}]}).encode())


async def test_a_run_without_a_screen_refuses_and_says_what_to_pass(tmp_path: Path) -> None:
    async with serve(*[lists] * 5) as server:
        ran = await listening(tmp_path, server).run("-p", "a secret")
        assert all(seen.path == "/v1/models" and not seen.body for seen in server.requests)
        assert server.requests
    assert (ran.code, ran.out) == (41, "")
    assert "-m ollama/planted" in ran.err
    assert len(ran.err.splitlines()) == 1


async def test_the_first_screen_says_it_and_a_choice_is_remembered(tmp_path: Path) -> None:
    async with serve(*[lists] * 20) as server:
        phoenix = listening(tmp_path, server)
        async with program(phoenix) as running:
            await running.shows(
                "use the server found on this machine: ollama/planted; nothing is sent to it until then", "demo/guide"
            )
            await running.ready()
            await running.send("/model ollama/planted")
            await running.shows("ask · no sandbox · planted ·")
            await running.until((phoenix.home / "servers.json").exists)
        assert all(seen.path == "/v1/models" for seen in server.requests)
        kept = json.loads((phoenix.home / "servers.json").read_text("utf-8"))
    assert kept["accepted"][0].startswith("ollama http://127.0.0.1:")
