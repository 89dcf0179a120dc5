"""The network by host of one command: the listener of its namespace, until something serves it, and its account."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct, field

from tools.contract import HostGate, HostUse, HostVerdict
from tools.process.zygote.wire import DOOR_PORT

ADDRESS: Final = f"http://127.0.0.1:{DOOR_PORT}"
LOCAL: Final = "localhost,127.0.0.1,::1"
_JAVA: Final = " ".join(
    f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={DOOR_PORT}" for scheme in ("http", "https")
)
ENVIRONMENT: Final[Mapping[str, str]] = {
    **{name: ADDRESS for base in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for name in (base, base.lower())},
    "NO_PROXY": LOCAL,
    "no_proxy": LOCAL,
    "NODE_USE_ENV_PROXY": "1",
    "YARN_HTTP_PROXY": ADDRESS,
    "YARN_HTTPS_PROXY": ADDRESS,
    "MAVEN_OPTS": _JAVA,
    "GRADLE_OPTS": _JAVA,
}
"""Variables by which programs find the proxy (docs/decisions/network.md)."""


class NetworkServer(Struct, frozen=True):
    """Serves listeners of commands."""

    open: Callable[[NetworkUse, socket.socket], Awaitable[None]]
    """Takes a listener at the first connection to it."""
    close: Callable[[NetworkUse], Awaitable[None]]
    """Ends its connections, and brings its last account."""


class NetworkUse(Struct, eq=False):
    """The network of one command: its listener until the first connection, then the proxy's account of it."""

    gate: HostGate
    server: NetworkServer
    hosts: tuple[HostUse, ...] = ()
    number: int = 0
    """Number at the proxy; 0 while nothing connected."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with the last account."""
    listening: socket.socket | None = None
    is_listening: bool = False
    """True once the listener has come."""
    handing: asyncio.Task[None] | None = None
    held: float = 0.0
    """Seconds that its connections waited for a person, which its own time limit does not count."""
    waiting: int = 0
    since: float = 0.0
    answering: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def take(self, descriptor: int) -> None:
        """Own the listener, and wait for its first connection."""
        self.listening, self.is_listening = socket.socket(fileno=descriptor), True
        asyncio.get_running_loop().add_reader(descriptor, self._accept_namespace)

    def _accept_namespace(self) -> None:
        listening = self._release()
        if listening is not None:
            self.handing = asyncio.create_task(self._hand_over(listening))

    async def _hand_over(self, listening: socket.socket) -> None:
        with listening:
            await self.server.open(self, listening)

    def _release(self) -> socket.socket | None:
        listening, self.listening = self.listening, None
        if listening is not None:
            asyncio.get_running_loop().remove_reader(listening)
        return listening

    async def decide(self, host: str, port: int) -> HostVerdict:
        """Ask the gate, and count the time that a person takes."""
        loop = asyncio.get_running_loop()
        if not self.waiting:
            self.since = loop.time()
        self.waiting += 1
        try:
            return await self.gate(host, port)
        finally:
            self.waiting -= 1
            if not self.waiting:
                self.held += loop.time() - self.since

    @property
    def lent(self) -> float:
        """Seconds that a time limit is longer, up to now."""
        return self.held + (asyncio.get_running_loop().time() - self.since if self.waiting else 0.0)

    async def end(self) -> tuple[HostUse, ...]:
        """Close it, and return the last account."""
        if (listening := self._release()) is not None:
            listening.close()
        if self.handing is not None:
            self.handing.cancel()
            await asyncio.wait({self.handing})
        if self.number:
            await self.server.close(self)
        for task in self.answering:
            task.cancel()
        return self.hosts


def keep_descriptors(descriptors: list[int]) -> int:
    """The one descriptor of a message; further ones, which nothing sends, are closed."""
    for further in descriptors[1:]:
        os.close(further)
    return descriptors[0] if descriptors else -1
