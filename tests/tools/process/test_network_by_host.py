"""Sandboxed commands that reach single hosts through the proxy of their own namespace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.processes import descriptors_open
from tests.support.proxying import Answers, program, web_server
from tests.support.waiting import poll
from tools.bash import Caller
from tools.contract import Command, Finished, HostUse, HostVerdict, Sandbox, SandboxMode
from tools.process.plan import BUBBLEWRAP
from tools.process.sandbox import bubblewrap
from tools.process.start import Processes, ProcessSettings, start_processes
from tools.process.zygote import wire
from tools.process.zygote.wire import DOOR_PORT

BY_HOST = Sandbox(SandboxMode.WORKSPACE, network=False, hosts=())
NAMES: Answers = {"good.example": [["127.0.0.1"]], "inner.example": [["10.0.0.1"]]}
FETCH = (
    "import sys, urllib.request as r\nfor url in sys.argv[1:]:\n    print(r.urlopen(url, timeout=20).read().decode())"
)


HOLD = 'import socket, time; s = socket.create_connection(("127.0.0.1", 47128)); s.sendall(b"G"); time.sleep(60)'
"""Connects to the proxy, begins a request, and waits."""


class Gate:
    """Allows hosts, and notes what was asked."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[tuple[str, int]] = []
        self.waits: asyncio.Event | None = None

    async def __call__(self, host: str, port: int) -> HostVerdict:
        self.asked.append((host, port))
        if self.waits is not None:
            await self.waits.wait()
        return HostVerdict(host in self.allowed, f"{host} is not allowed here")


@contextlib.asynccontextmanager
async def running(names: Answers = NAMES, mechanism: str = wire.NAMESPACE) -> AsyncIterator[Processes]:
    processes = await start_processes(ProcessSettings(proxy=program(names)))
    try:
        if not (await processes.probe()).guards_files or (mechanism == BUBBLEWRAP and not bubblewrap()):
            pytest.skip("no namespaces on this machine, or no bubblewrap")
        processes.planner.sandbox = mechanism
        yield processes
    finally:
        await processes.close()


async def sh(
    processes: Processes, script: str, folder: Path, gate: Gate | None, limits: Sandbox = BY_HOST, limit: float = 30
) -> Finished:
    command = Command(("/bin/sh", "-c", script), folder, timeout=limit, sandbox=limits, gate=gate)
    ended = await processes.jobs.run(command, Caller("one", script, script))
    assert isinstance(ended, Finished)
    return ended


def python(code: str, *arguments: str) -> str:
    quoted = " ".join(f"'{one}'" for one in arguments)
    return f"{sys.executable} -I -S -c '{code}' {quoted}"


def proxies() -> list[int]:
    """Proxies of this test's process."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and b"tests.support.proxying" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("mechanism", [wire.NAMESPACE, BUBBLEWRAP])
async def test_a_command_reaches_an_allowed_host_and_is_told_who_refused_another(
    tmp_path: Path, mechanism: str
) -> None:
    seen: list[bytes] = []
    gate = Gate("good.example")
    async with web_server(seen) as port, running(mechanism=mechanism) as processes:
        good = python(FETCH, f"http://good.example:{port}/a")
        bad = python(FETCH, f"http://evil.example:{port}/")
        ended = await sh(processes, f"{good}; {bad}", tmp_path, gate)
    output = ended.captured.head.decode()
    assert output.startswith("hello\n")
    assert "HTTP Error 403: evil.example is not allowed here" in output
    assert gate.asked == [("good.example", port), ("evil.example", port)]
    good_use, evil = ended.captured.hosts
    assert (good_use.host, good_use.requests, good_use.refused) == ("good.example", 1, 0)
    assert good_use.received > len("hello")
    assert good_use.sent == len(seen[0])
    assert evil == HostUse("evil.example", refused=1, why="evil.example is not allowed here")


async def test_a_command_that_connects_to_nothing_starts_no_proxy(tmp_path: Path) -> None:
    before = proxies()
    async with running() as processes:
        ended = await sh(processes, "true", tmp_path, Gate())
        assert ended.exit_code == 0
        assert ended.captured.hosts == ()
        assert proxies() == before


ESCAPES = {
    "direct": 'import socket; socket.create_connection(("203.0.113.1", 443), 3)',
    "udp": 'import socket; socket.socket(2, 2).sendto(b"x", ("203.0.113.1", 53))',
    "ipv6": 'import socket; socket.create_connection(("2001:db8::1", 443), 3)',
    "name": 'import socket; socket.getaddrinfo("good.example", 80)',
}


@pytest.mark.parametrize("way", ESCAPES)
async def test_there_is_no_way_around_the_proxy(tmp_path: Path, way: str) -> None:
    async with running() as processes:
        ended = await sh(processes, python(ESCAPES[way]), tmp_path, Gate("good.example"))
    assert ended.exit_code == 1
    assert b"OSError" in ended.captured.head or b"gaierror" in ended.captured.head


async def test_a_private_address_behind_an_allowed_name_is_refused_with_its_reason(tmp_path: Path) -> None:
    async with running() as processes:
        ended = await sh(processes, python(FETCH, "http://inner.example/"), tmp_path, Gate("inner.example"))
    assert ended.captured.hosts == (
        HostUse(
            "inner.example",
            refused=1,
            why="inner.example is an address of this machine or a private network, which the proxy never reaches",
        ),
    )


async def test_another_command_cannot_reach_this_listener(tmp_path: Path) -> None:
    knock = python(f'import socket; socket.create_connection(("127.0.0.1", {DOOR_PORT}), 3)')
    gate = Gate("good.example")
    async with running() as processes:
        holder = Command(("/bin/sh", "-c", "sleep 30"), tmp_path, sandbox=BY_HOST, gate=gate)
        await processes.jobs.start(holder, "one", "holder")
        without = Sandbox(SandboxMode.WORKSPACE, network=False)
        refused = await sh(processes, knock, tmp_path, None, without)
        outside = await sh(processes, knock, tmp_path, None, Sandbox())
        own = await sh(processes, knock, tmp_path, Gate())
    assert (refused.exit_code, outside.exit_code, own.exit_code) == (1, 1, 0)
    assert gate.asked == []


async def test_a_server_and_its_client_in_one_command_use_loopback_without_the_proxy(tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text("from inside")
    serve = f"{sys.executable} -m http.server -b 127.0.0.1 8000 2>log & "
    wait = "until grep -q Serving log 2>/dev/null; do :; done; "
    serve = serve.replace("-m", "-u -m").replace("2>log", ">log 2>&1")
    gate = Gate()
    async with running() as processes:
        fetch = python(FETCH, "http://127.0.0.1:8000/page.txt")
        ended = await sh(processes, f"{serve}{wait}{fetch}", tmp_path, gate)
    assert b"from inside" in ended.captured.head
    assert gate.asked == []


async def test_time_that_a_person_takes_does_not_count_for_the_limit_of_the_command(tmp_path: Path) -> None:
    gate = Gate("good.example")
    gate.waits = asyncio.Event()
    async with web_server([]) as port, running() as processes:
        fetch = python(FETCH, f"http://good.example:{port}/")
        task = asyncio.create_task(sh(processes, fetch, tmp_path, gate, limit=1.5))
        assert await poll(lambda: bool(gate.asked))
        done, _ = await asyncio.wait({task}, timeout=2)
        assert not done
        gate.waits.set()
        ended = await task
    assert not ended.timed_out
    assert b"hello" in ended.captured.head


async def test_the_proxy_and_its_connections_end_with_the_command_and_with_phoenix(tmp_path: Path) -> None:
    gate = Gate("good.example")
    before, descriptors = proxies(), descriptors_open()
    async with running() as processes:
        task = asyncio.create_task(sh(processes, python(HOLD), tmp_path, gate))
        assert await poll(lambda: len(proxies()) > len(before))
        task.cancel()
        await asyncio.wait({task})
        ended = await sh(processes, python(FETCH, "http://evil.example/"), tmp_path, gate)
        assert [use.host for use in ended.captured.hosts] == ["evil.example"]
    assert await poll(lambda: proxies() == before)
    assert descriptors_open() == descriptors


MANY = (
    "import socket, sys\n"
    'host = ".".join(["a" * 62] * 3)\n'
    "held = []\n"
    "for number in range(64):\n"
    '    held.append(socket.create_connection(("127.0.0.1", 47128)))\n'
    '    held[-1].sendall(f"CONNECT {host}.x{number}.example:443 HTTP/1.1\\r\\n\\r\\n".encode())\n'
    'print(sum(one.recv(12) == b"HTTP/1.1 403" for one in held))'
)


async def test_a_burst_of_answers_ends_no_connection_of_other_commands(tmp_path: Path) -> None:
    """SECURITY U3."""
    gate, before = Gate(), proxies()
    gate.waits = asyncio.Event()
    (tmp_path / "many.py").write_text(MANY)
    async with running() as processes:
        script = f"{sys.executable} -I -S many.py"
        tasks = [asyncio.create_task(sh(processes, script, tmp_path, gate)) for _ in range(4)]
        assert await poll(lambda: len(gate.asked) == 256)
        running_proxies = set(proxies()) - set(before)
        gate.waits.set()
        assert [(await task).captured.head for task in tasks] == [b"64\n"] * 4
        assert set(proxies()) - set(before) == running_proxies


async def test_a_killed_proxy_is_replaced_for_the_next_command(tmp_path: Path) -> None:
    before = proxies()
    async with running() as processes:
        ask = python(FETCH, "http://evil.example/")
        first = await sh(processes, ask, tmp_path, Gate())
        assert [use.host for use in first.captured.hosts] == ["evil.example"]
        for pid in set(proxies()) - set(before):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        assert await poll(lambda: proxies() == before)
        again = await sh(processes, ask, tmp_path, Gate())
    assert [use.refused for use in again.captured.hosts] == [1]


async def test_a_proxy_that_cannot_start_refuses_and_says_so(tmp_path: Path) -> None:
    processes = await start_processes(ProcessSettings(proxy=("/nonexistent/proxy",)))
    try:
        if not (await processes.probe()).guards_files:
            pytest.skip("no namespaces on this machine")
        ended = await sh(processes, python(FETCH, "http://good.example/"), tmp_path, Gate("good.example"))
    finally:
        await processes.close()
    assert ended.exit_code == 1
    assert [use.why for use in ended.captured.hosts] == ["Phoenix's proxy could not be started"]


HOLDER = """
import asyncio, sys
from pathlib import Path
from tests.tools.process.test_network_by_host import HOLD, Gate, python, running, sh

async def main():
    async with running() as processes:
        await sh(processes, python(HOLD), Path(sys.argv[1]), Gate())

asyncio.run(main())
"""


async def test_the_proxy_ends_with_a_phoenix_that_is_killed(tmp_path: Path) -> None:
    before = proxies()
    async with running():  # skips where there are no namespaces
        pass
    root = Path(__file__).parents[3]
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, str(tmp_path), cwd=root)
    try:
        assert await poll(lambda: len(proxies()) > len(before))
    finally:
        host.kill()
        await host.wait()
    assert await poll(lambda: proxies() == before)
