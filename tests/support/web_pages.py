"""A web server on loopback that answers by path with given bytes, and a reach that finds it under any name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class WebPages:
    """Pages by path, and the requests that came."""

    pages: dict[str, bytes]
    port: int = 0
    requests: list[str] = field(default_factory=list)

    def url(self, path: str, host: str = "pages.test") -> str:
        return f"http://{host}:{self.port}{path}"


@dataclass
class NamedReach:
    """Every host is this machine, except those that the test says."""

    hosts: dict[str, list[str]] = field(default_factory=dict)
    through: str = ""
    """URL of a proxy for all hosts."""

    async def resolve(self, host: str, port: int) -> list[str]:
        return self.hosts.get(host, ["127.0.0.1"])

    def admits(self, address: str) -> bool:
        return address == "127.0.0.1"

    def proxy(self, scheme: str, host: str) -> str:
        return self.through


def page(body: bytes | str, kind: str = "text/html; charset=utf-8", status: str = "200 OK", more: str = "") -> bytes:
    content = body.encode() if isinstance(body, str) else body
    fields = f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n{more}"
    return f"HTTP/1.1 {status}\r\n{fields}\r\n".encode() + content


def redirect(to: str) -> bytes:
    return page("", status="302 Found", more=f"Location: {to}\r\n")


@asynccontextmanager
async def serve_pages(pages: dict[str, bytes]) -> AsyncGenerator[WebPages, None]:
    """Serve until the block ends; an unknown path sends nothing and stays open."""
    served = WebPages(pages)

    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await answered(reader, writer)
        finally:
            tasks.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
            served.requests.append(head)
            answer = served.pages.get(head.split()[1])
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
