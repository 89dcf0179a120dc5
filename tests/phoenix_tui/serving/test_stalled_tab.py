"""`phoenix serve`, and a tab that reads nothing and is drawn whole once it reads again."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import aiohttp
import pyte
import pytest

from phoenix_tui.terminal.serving.web_driver import MOST_WAITING, PacketWriter
from tests.support.browser import CHROMIUM, browser
from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.journeys import Claude, calls, rows, says
from tests.support.loopback import serve
from tests.support.serving import DEADLINE, serving
from tests.support.waiting import PATIENCE, poll, poll_blocking

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the size of a pipe is set as on Linux")
SMALLEST_PIPE = 4096


def small_pipe() -> tuple[int, int]:
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    return reads, writes


def packet(kind: bytes, payload: bytes) -> bytes:
    return b"%s%s%s" % (kind, len(payload).to_bytes(4, "big"), payload)


def packets(stream: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Whole packets; fails on a torn one, but for the last, which may still come."""
    while len(stream) >= 5:
        kind, size = stream[:1], int.from_bytes(stream[1:5], "big")
        assert kind in {b"D", b"M"}
        if len(stream) < 5 + size:
            return
        yield kind, stream[5 : 5 + size]
        stream = stream[5 + size :]


def test_a_reader_that_stopped_holds_up_nobody_and_gets_whole_packets_later() -> None:
    reads, writes = small_pipe()
    empty = Event()
    writer = PacketWriter(writes, empty.set)
    try:
        for number in range(200):
            writer.offer(packet(b"D", b"%d " % number * 2_000))
        writer.put(packet(b"M", b"exit"))
        assert not empty.is_set()
        received = b""
        while not received.endswith(b"exit"):
            received += os.read(reads, 65_536)
        found = list(packets(received))
        assert found[-1] == (b"M", b"exit")
        assert found[:-1] == [(b"D", b"%d " % number * 2_000) for number in range(len(found) - 1)]
        assert len(found) - 1 <= MOST_WAITING + 1
        assert poll_blocking(empty.is_set)
        empty.clear()
        writer.offer(packet(b"D", b"again"))
        assert os.read(reads, 100) == packet(b"D", b"again")
        writer.end()
        assert not empty.is_set()
    finally:
        os.close(reads)
        os.close(writes)


def test_a_server_that_is_gone_is_written_to_in_vain_and_the_end_is_not_held_up() -> None:
    reads, writes = small_pipe()
    os.close(reads)
    writer = PacketWriter(writes, lambda: None)
    for _ in range(100):
        writer.offer(packet(b"D", b"x" * 5_000))
    writer.end()
    assert poll_blocking(lambda: "phoenix-web" not in {thread.name for thread in threading.enumerate()})
    os.close(writes)


class Tab:
    """Actions of the server of a tab, by hand."""

    def __init__(self, process: asyncio.subprocess.Process, reads: int) -> None:
        self.process = process
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self._reads = reads
        self._received = b""
        self._taken = 0

    def send(self, kind: bytes, payload: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(packet(kind, payload))

    def read(self) -> bool:
        """Take what there is; always true."""
        with contextlib.suppress(BlockingIOError):
            self._received += os.read(self._reads, 65_536)
        greeting, found, rest = self._received.partition(b"__GANGLION__\n")
        assert not greeting.strip(b"_GANGLIO\n")
        whole = list(packets(rest)) if found else []
        for kind, payload in whole[self._taken :]:
            if kind == b"D":
                self._stream.feed(payload)
        self._taken = len(whole)
        return True

    async def close(self) -> None:
        os.close(self._reads)
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def shows(self, text: str) -> bool:
        return text in "\n".join(self.screen.display)


async def opened(phoenix: Phoenix) -> Tab:
    """Phoenix as `phoenix serve` starts it for a tab, with a pipe that holds less than one frame."""
    reads, writes = small_pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "phoenix_tui",
        cwd=phoenix.cwd,
        env=phoenix.environment
        | {"PHOENIX_SERVED": "1", "PHOENIX_PERMISSION_MODE": "auto", "COLUMNS": "80", "ROWS": "24"},
        stdin=asyncio.subprocess.PIPE,
        stdout=writes,
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(writes)
    os.set_blocking(reads, False)
    return Tab(process, reads)


async def test_a_conversation_goes_on_behind_a_tab_that_reads_nothing(claude: Claude) -> None:
    commands = [calls("bash", f"toolu_{number}", command="seq 40") for number in range(3)]
    phoenix, server = await claude(*commands, says("The last answer."))
    tab = await opened(phoenix)
    try:
        tab.send(b"D", b"go\r")
        assert await poll(lambda: len(server.requests) == 4), tab.process.returncode
        assert await poll(lambda: ended_runs(phoenix) == ["success"])
        assert await poll(lambda: tab.read() and tab.shows("The last answer.")), tab.screen.display
        tab.send(b"M", b'{"type": "quit"}')
        ending = asyncio.create_task(tab.process.wait())
        assert await poll(lambda: tab.read() and ending.done())
        assert ending.result() == 143
    finally:
        await tab.close()


def ended_runs(phoenix: Phoenix) -> list[str]:
    with contextlib.suppress(sqlite3.OperationalError):  # the database is only being made
        return [status for (status,) in rows(phoenix, "SELECT status FROM runs WHERE ended_at IS NOT NULL")]
    return []


async def test_a_tab_that_reads_nothing_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with serve(says("Answer.")) as server:
        tab = await opened(with_claude(tmp_path, server.url))
        try:
            tab.send(b"D", b"one\r")
            assert await poll(lambda: bool(server.requests)), tab.process.returncode
            tab.send(b"M", b'{"type": "quit"}')
            assert await asyncio.wait_for(tab.process.wait(), PATIENCE) == 143
        finally:
            await tab.close()


@pytest.mark.parametrize("number", [0, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_a_tab_keeps_its_draft_however_it_is_told_to_end(claude: Claude, number: int) -> None:
    """0 is the word of the server; Ctrl+C in the server's terminal comes as SIGINT."""
    phoenix, _ = await claude(says("Answer."))
    tab = await opened(phoenix)
    try:
        tab.send(b"D", b"one\r")
        assert await poll(lambda: tab.read() and tab.shows("Answer.")), tab.screen.display
        tab.send(b"D", b"half a sen")
        assert await poll(lambda: tab.read() and tab.shows("half a sen")), tab.screen.display
        if number:
            tab.process.send_signal(number)
        else:
            tab.send(b"M", b'{"type": "quit"}')
        ending = asyncio.create_task(tab.process.wait())
        assert await poll(lambda: tab.read() and ending.done())
        assert ending.result() == 128 + (number or signal.SIGTERM)
    finally:
        await tab.close()
    assert [draft for (draft,) in rows(phoenix, "SELECT draft FROM conversations")] == ["half a sen"]


async def test_only_who_brings_the_token_gets_in_and_it_leaves_the_address(tmp_path: Path) -> None:
    async with serving(phoenix_in(tmp_path)) as served, aiohttp.ClientSession(cookie_jar=_jar()) as session:
        address = served.address
        refused = await session.get(address)
        assert refused.status == 403
        assert "token" in await refused.text()
        assert (await session.get(f"{address}?token=wrong")).status == 403
        entered = await session.get(served.invitation)
        assert (entered.status, str(entered.url).partition("#")[0]) == (200, address)
        assert "default-src 'self'" in entered.headers["Content-Security-Policy"]
        foreign = await session.get(f"{address}ws", headers={"Origin": "http://elsewhere.example"})
        assert foreign.status == 403


def _jar() -> aiohttp.CookieJar:
    return aiohttp.CookieJar(unsafe=True)  # cookies of a bare address, as a browser keeps them


async def test_a_port_in_use_is_one_sentence_with_the_fix(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = await phoenix_in(tmp_path).run("serve", "--port", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert "choose another with --port" in ran.err
    assert len(ran.err.splitlines()) == 1


async def test_listening_beyond_this_machine_is_warned_of(tmp_path: Path) -> None:
    process = await phoenix_in(tmp_path).start("serve", "--host", "0.0.0.0", "--port", "0")
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readline(), DEADLINE)
    process.terminate()
    _, err = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert b"can run commands as you" in err


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine")
async def test_a_conversation_is_held_in_a_browser(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    async with serving(phoenix) as served, browser() as tab:
        await tab.open(served.invitation)
        await tab.until("document.querySelector('.xterm-helper-textarea') && document.body.className.includes('byte')")
        await tab.click(600, 300)
        await tab.type("count to 3\n")

        async def answered() -> bool:
            listed = await phoenix.run("conversations", "list", "--json")
            return any(row["message_count"] >= 2 for row in listed.json)

        async with asyncio.timeout(DEADLINE):
            while not await answered():
                pass
