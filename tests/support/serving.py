"""`phoenix serve` as a process, and a page of it as a browser would hold it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from tests.support.cli import Phoenix

DEADLINE = 45.0


@dataclass
class Served:
    """A running server."""

    process: asyncio.subprocess.Process
    invitation: str
    errors: bytes = b""

    @property
    def address(self) -> str:
        """Address without the token, ends in a slash."""
        return self.invitation.partition("?")[0]

    @property
    def origin(self) -> str:
        return self.address.rstrip("/")

    @property
    def port(self) -> int:
        port = urlsplit(self.address).port
        assert port is not None
        return port


@asynccontextmanager
async def serving(phoenix: Phoenix, *arguments: str, module: str = "phoenix_tui") -> AsyncGenerator[Served]:
    """A server on a free port; what it said on stderr is in `errors` afterwards. `module` is what runs in its place."""
    process = await phoenix.start("serve", "--port", "0", "--json", *arguments, module=module)
    assert process.stdout is not None
    served = Served(process, "")
    try:
        line = await asyncio.wait_for(process.stdout.readline(), DEADLINE)
        served.invitation = json.loads(line)["url"]
        yield served
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        _, served.errors = await asyncio.wait_for(process.communicate(), DEADLINE)


@asynccontextmanager
async def visitor(served: Served) -> AsyncGenerator[tuple[aiohttp.ClientSession, str]]:
    """Someone who was invited: a session with the cookie, and the key that the page keeps."""
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of a bare address, as a browser keeps them
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        entered = await session.get(served.invitation, allow_redirects=False)
        yield session, entered.headers["Location"].partition("#key=")[2]


@asynccontextmanager
async def tab(
    served: Served, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
    """A page whose Phoenix has drawn."""
    async with visitor(served) as (session, key):
        given = {"Origin": served.origin} if headers is None else headers
        url = f"{served.address}ws/{key}?width=80&height=24"
        async with session.ws_connect(url, headers=given) as socket:
            drawn = b""
            async with asyncio.timeout(DEADLINE):
                while b"guide" not in drawn and b"Phoenix" not in drawn:
                    message = await socket.receive()
                    assert message.type is aiohttp.WSMsgType.BINARY, message
                    drawn += message.data
            yield socket
