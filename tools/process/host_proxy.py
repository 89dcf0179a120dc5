"""Phoenix's end of the proxy by which commands reach single hosts: started once, asked for by many."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tools.contract import Captured, Command, HostUse, Sandbox, SandboxMode
from tools.process.network import NetworkServer, NetworkUse
from tools.process.proxy.outbox import Outbox
from tools.process.supervision import Running, Supervision
from tools.process.zygote.wire import Streams

ROOT: Final = Path(__file__).resolve().parents[2]
BOOT: Final = "import sys; sys.path.append(sys.argv[1]); from tools.process.proxy.server import serve; serve()"
PROGRAM: Final = (sys.executable, "-I", "-S", "-c", BOOT, str(ROOT))
"""The proxy."""
OWNER: Final = "network"
"""Owner of its temporary folder, beside the conversations."""
PACKET: Final = 128 * 1024
STDERR_KEPT: Final = 4 * 1024
ACCOUNT_SECONDS: Final = 1.0
"""Seconds that the proxy has for the last account of a command."""
MOST_ASKED: Final = 256
"""Questions of the proxy at a time."""
NEXT_HOPS: Final = frozenset({"http", "socks5", "socks5h"})
"""Kinds of proxies of the user that the proxy goes through."""
FAILED: Final = "Phoenix's proxy could not be started"


class ProxyMessage(Struct, frozen=True):
    """A packet of the proxy: a question about a host, or an account."""

    ask: int = 0
    listener: int = 0
    host: str = ""
    port: int = 0
    account: int = 0
    hosts: tuple[tuple[str, int, int, int, int, str], ...] = ()
    last: bool = False


class ProxyStreams:
    """The socket to the proxy as its stdin, and its stderr drained."""

    def __init__(self) -> None:
        self.control, self._child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        self.claimed = False
        """True once the proxy runs: its owner closes the socket."""
        try:
            from tools.process.one_shot import Drain  # noqa: PLC0415 - only a command that reaches a host needs it

            self._stderr = Drain(0, STDERR_KEPT)
        except OSError:
            self.control.close()
            self._child.close()
            raise

    def child_ends(self) -> Streams:
        """The socket and one pipe."""
        return (self._child.fileno(), self._stderr.child_end, self._stderr.child_end)

    def start(self) -> None:
        """Close the child's ends and begin to drain."""
        self._child.close()
        self._stderr.start()

    def fall_silent(self) -> None:
        """Do nothing: no progress is reported."""

    def capture(self) -> Captured:
        """The end of stderr so far."""
        return self._stderr.capture()

    async def finish(self) -> Captured:
        """Collect the rest of stderr; close the socket of a proxy that never ran."""
        self._child.close()
        if not self.claimed:
            self.control.close()
        return self._stderr.finish()


class HostProxy:
    """The one proxy of this Phoenix, started with the first connection of a command."""

    def __init__(self, supervision: Supervision, program: tuple[str, ...] = PROGRAM) -> None:
        self._supervision = supervision
        self._program = program
        self._uses: dict[int, NetworkUse] = {}
        self._count = 0
        self._starting = asyncio.Lock()
        self._outbox: Outbox | None = None
        self._running: Running | None = None
        supervision.network = NetworkServer(self.open, self.settle)

    async def open(self, use: NetworkUse, listening: socket.socket) -> None:
        """Have a listener served. Where the proxy cannot be started, the command's connections are refused."""
        try:
            outbox = await self._ensure_started()
            self._count += 1
            use.number = self._count
            self._uses[use.number] = use
            outbox.send(msgspec.json.encode({"open": use.number}), listening.fileno())
        except OSError:
            use.hosts = (HostUse("", refused=1, why=FAILED),)
            use.settled.set()

    async def settle(self, use: NetworkUse) -> None:
        """Have the connections of a command ended, and wait for its last account."""
        self._send({"close": use.number})
        if self._outbox is None:
            use.settled.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ACCOUNT_SECONDS):
                await use.settled.wait()
        self._uses.pop(use.number, None)

    async def close(self) -> None:
        """End the proxy."""
        async with self._starting:
            self._note_loss()
            if self._running is not None:
                await self._supervision.end(self._running)
                self._running = None

    async def _ensure_started(self) -> Outbox:
        """The way to a running proxy.

        Raises:
            OSError: it cannot be started.
        """
        async with self._starting:
            if self._outbox is not None:
                return self._outbox
            if self._running is not None:
                await self._supervision.end(self._running)
                self._running = None
            limits = Sandbox(SandboxMode.READ_ONLY, network=True, required=False)
            command = Command(self._program, ROOT, sandbox=limits)
            self._running, streams = await self._supervision.start_with(command, OWNER, ProxyStreams)
            streams.claimed = True
            self._outbox = Outbox(streams.control)
            asyncio.get_running_loop().add_reader(streams.control, self._hear)
            return self._outbox

    def _send(self, message: Mapping[str, object]) -> None:
        if self._outbox is not None:
            try:
                self._outbox.send(msgspec.json.encode(message))
            except OSError:  # it is gone, or takes nothing any more
                self._note_loss()

    def _hear(self) -> None:
        while self._outbox is not None:
            try:
                packet = self._outbox.control.recv(PACKET)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._note_loss()
                return
            with contextlib.suppress(msgspec.DecodeError):
                self._take(msgspec.json.decode(packet, type=ProxyMessage))

    def _take(self, message: ProxyMessage) -> None:
        use = self._uses.get(message.account or message.listener)
        if message.ask:
            self._answer_soon(message, use)
        elif use is not None and message.account:
            use.hosts = tuple(HostUse(*row) for row in message.hosts)
            if message.last:
                use.settled.set()

    def _answer_soon(self, message: ProxyMessage, use: NetworkUse | None) -> None:
        if use is None or len(use.answering) >= MOST_ASKED:
            self._send({"answer": message.ask, "allowed": False, "why": f"{message.host} is not allowed"})
            return
        task = asyncio.create_task(self._answer(message, use))
        use.answering.add(task)
        task.add_done_callback(use.answering.discard)

    async def _answer(self, message: ProxyMessage, use: NetworkUse) -> None:
        verdict = await use.decide(message.host, message.port)
        hop = await asyncio.to_thread(next_proxy, message.host, message.port) if verdict.allowed else ""
        kind = hop.partition("://")[0].lower()
        unknown = bool(hop) and kind not in NEXT_HOPS
        why = unknown_hop(kind, message.port) if unknown else verdict.why
        self._send({
            "answer": message.ask,
            "allowed": verdict.allowed and not unknown,
            "why": why,
            "proxy": hop,
        })

    def _note_loss(self) -> None:
        """The proxy is gone: the next connection starts another."""
        if self._outbox is not None:
            asyncio.get_running_loop().remove_reader(self._outbox.control)
            self._outbox.close()
            self._outbox.control.close()
            self._outbox = None
        for use in self._uses.values():
            use.settled.set()


def unknown_hop(kind: str, port: int) -> str:
    """Reason why the user's own proxy is not gone through, with the variable that names it."""
    from tools.web.surroundings import proxy_of  # noqa: PLC0415 - seldom needed

    name, _ = proxy_of("http" if port == 80 else "https", os.environ)
    return f"{name or 'your proxy'} names a proxy that speaks {kind}; commands go through http:// and socks5:// proxies"


def next_proxy(host: str, port: int) -> str:
    """Address of the user's own proxy for a host, from the environment; empty without one."""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 5 ms

    proxies = getproxies()
    found = proxies.get("http" if port == 80 else "https") or proxies.get("all") or ""
    if not found or proxy_bypass(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"):
        return ""
    return found if "://" in found else f"http://{found}"
