"""The proxy of commands with host names of a test: inside the test's loop, or as the program that Phoenix starts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from tools.process.proxy.server import Names, Proxy, serve

ROOT = Path(__file__).parents[2]
BOOT = "import sys; sys.path.append(sys.argv[1]); from tests.support.proxying import begin; begin(sys.argv[2])"

Answers = dict[str, list[list[str]]]
"""Addresses that each lookup of a host gives, one after the other; the last one stays."""


class TestNames(Names):
    """Hosts of a test; 127.0.0.x counts as public, except for 127.0.0.9."""

    __test__ = False

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self.answers = answers
        self.looked_up: list[str] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        self.looked_up.append(host)
        known = self.answers.get(host)
        if known is None:
            raise OSError
        return known.pop(0) if len(known) > 1 else known[0]

    def admits(self, address: str) -> bool:
        return super().admits(address) or (address.startswith("127.0.0.") and address != "127.0.0.9")


def begin(answers: str) -> None:
    """The life of a proxy that Phoenix started."""
    serve(TestNames(json.loads(answers)))


def program(answers: Answers) -> tuple[str, ...]:
    """The command line of such a proxy."""
    return (sys.executable, "-I", "-S", "-c", BOOT, str(ROOT), json.dumps(answers))


Asked = Callable[[str, int], Awaitable[dict[str, object]]]


class Served:
    """A proxy in this loop, on a port of the loopback."""

    def __init__(self, control: socket.socket, names: TestNames, proxy: Proxy) -> None:
        self.port = 0
        self.names = names
        self.proxy = proxy
        self.asked: list[tuple[str, int]] = []
        self.accounts: list[list[list[object]]] = []
        self.control = control
        self.ended: dict[int, asyncio.Event] = {}

    def listen(self, number: int) -> int:
        """Hand the proxy the listener of another command; its port."""
        self.ended[number] = asyncio.Event()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            socket.send_fds(self.control, [json.dumps({"open": number}).encode()], [listening.fileno()])
            return int(listening.getsockname()[1])

    async def says(self, sent: bytes, *, end: bool = False, port: int = 0) -> bytes:
        """The whole answer of the proxy to these bytes; `end` closes the client's half at once."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port or self.port)
        with contextlib.suppress(OSError):
            writer.write(sent)
            await writer.drain()
            if end:
                writer.write_eof()
        try:
            async with asyncio.timeout(20):
                return await reader.read()
        except OSError:
            return b""
        finally:
            writer.close()

    async def account(self) -> dict[str, tuple[int, int]]:
        """Requests and refusals of each host, once its listener is closed."""
        await self.end(1)
        return {str(row[0]): (int(str(row[1])), int(str(row[4]))) for row in self.accounts[-1]}

    async def end(self, number: int) -> None:
        """Have the proxy close the listener of a command."""
        if not self.ended[number].is_set():
            self.control.send(json.dumps({"close": number}).encode())
            async with asyncio.timeout(10):
                await self.ended[number].wait()

    async def answer(self, decide: Asked) -> None:
        """Answer questions as Phoenix does."""
        loop = asyncio.get_running_loop()
        while packet := await loop.sock_recv(self.control, 1 << 17):
            message = json.loads(packet)
            if "ask" in message:
                self.asked.append((message["host"], message["port"]))
                given = await decide(message["host"], message["port"])
                self.control.send(json.dumps({"answer": message["ask"], **given}).encode())
            else:
                self.accounts.append(message["hosts"])
                if message["last"]:
                    self.ended[message["account"]].set()


@contextlib.asynccontextmanager
async def proxying(
    answers: Answers, allowed: Sequence[str] = (), next_hop: str = "", real: Names | None = None
) -> AsyncIterator[Served]:
    """A proxy that is allowed these hosts on every port; `real` looks them up in place of the test."""

    async def decide(host: str, _port: int) -> dict[str, object]:
        if host in allowed:
            return {"allowed": True, "proxy": next_hop}
        return {"allowed": False, "why": f"{host} is not allowed here"}

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setblocking(False)
    names = TestNames(answers)
    proxy = Proxy(theirs, real or names)
    loop = asyncio.get_running_loop()
    loop.add_reader(theirs, proxy.hear)
    served = Served(ours, names, proxy)
    served.port = served.listen(1)
    answering = asyncio.create_task(served.answer(decide))
    try:
        yield served
    finally:
        for number in served.ended:
            await served.end(number)
        answering.cancel()
        await asyncio.wait({answering})
        loop.remove_reader(theirs)
        ours.close()
        theirs.close()


@contextlib.asynccontextmanager
async def web_server(seen: list[bytes], answer: bytes = b"") -> AsyncIterator[int]:
    """A server on the loopback that notes what it is sent and gives `answer`, else a page; its port."""
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(one[15:]) for one in head.lower().split(b"\r\n") if one[:15] == b"content-length:"), 0)
            seen.append(head + await reader.readexactly(length))
            writer.write(answer or page)
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    while more := await reader.read(4096):  # what a client sends behind its request
                        seen.append(more)
        writer.close()

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
