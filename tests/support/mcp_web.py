"""An MCP server over HTTP in the test itself: a handshake of 2025-11-25 with JSON answers, and anything else."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from msgspec import Struct

from tests.support.mcp_raw import tool


class Asked(Struct):
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The JSON of the body."""
        return dict(json.loads(self.body)) if self.body.startswith(b"{") else {}


class Given(Struct):
    """An answer; `endless` repeats the body until the client leaves."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}
    endless: bool = False


Answerer: TypeAlias = Callable[[Asked], Given | None]


class WebServer:
    """Answers with what `special` gives, else as an ordinary server with the tool `fine`."""

    def __init__(self, special: Answerer = lambda _: None) -> None:
        self.special = special
        self.asked: list[Asked] = []
        self.sessions = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """Address of the endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def calls(self, method: str) -> list[Asked]:
        """All requests with this method of MCP."""
        return [asked for asked in self.asked if asked.message.get("method") == method]

    async def listen(self) -> None:
        """Listen, after a stop on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1 << 20)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening and drop all connections."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                asked = await _read(reader)
                self.asked.append(asked)
                given = self.special(asked) or self._ordinary(asked)
                await _write(writer, given)
        self._open.discard(writer)
        writer.close()

    def _ordinary(self, asked: Asked) -> Given:
        message = asked.message
        match message.get("method"):
            case "initialize":
                self.sessions += 1
                result: dict[str, Any] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "web", "version": "1"},
                }
                return answer(message, result, {"Mcp-Session-Id": f"s{self.sessions}"})
            case "tools/list":
                return answer(message, {"tools": [tool("fine")]})
            case "tools/call":
                return answer(message, {"content": [{"type": "text", "text": f"fine {self.sessions}"}]})
            case str() if "id" not in message:
                return Given(202)
            case str():
                return Given(400)
            case _:
                return Given(405)


def answer(message: dict[str, Any], result: dict[str, Any], headers: dict[str, str] | None = None) -> Given:
    """A JSON-RPC answer."""
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return Given(200, body, {"Content-Type": "application/json", **(headers or {})})


def data(content: dict[str, Any], status: int = 200) -> Given:
    """A JSON document."""
    return Given(status, json.dumps(content).encode(), {"Content-Type": "application/json"})


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _write(writer: asyncio.StreamWriter, given: Given) -> None:
    length = {} if given.endless else {"Content-Length": str(len(given.body))}
    lines = [f"{name}: {value}" for name, value in {**length, **given.headers}.items()]
    writer.write("\r\n".join([f"HTTP/1.1 {given.status} X", *lines, "", ""]).encode() + given.body)
    await writer.drain()
    while given.endless:
        writer.write(given.body)
        await writer.drain()
        await asyncio.sleep(0)


class SignInServer(WebServer):
    """A server that wants tokens, and its authorization server with registration, codes and refresh."""

    def __init__(self) -> None:
        super().__init__(self._guarded)
        self.tokens: set[str] = set()
        self.grants: list[dict[str, str]] = []
        self.lifetime = 3600

    def _guarded(self, asked: Asked) -> Given | None:
        origin = f"http://127.0.0.1:{self.port}"
        path = asked.path.partition("?")[0]
        if path.startswith("/.well-known/oauth-protected-resource"):
            return data({"resource": self.url, "authorization_servers": [origin]})
        if path.startswith("/.well-known/oauth-authorization-server"):
            ends = {f"{name}_endpoint": f"{origin}/{name}" for name in ("token", "authorization", "registration")}
            return data({"issuer": origin, "code_challenge_methods_supported": ["S256"], **ends})
        if path == "/registration":
            return data({**json.loads(asked.body), "client_id": "registered"}, 201)
        if path == "/token":
            return self._grant({name: values[0] for name, values in parse_qs(asked.body.decode()).items()})
        if asked.headers.get("authorization", "").removeprefix("Bearer ") in self.tokens:
            return None
        where = f'Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'
        return Given(401, b"", {"WWW-Authenticate": where})

    def _grant(self, wanted: dict[str, str]) -> Given:
        self.grants.append(wanted)
        token = f"token{len(self.grants)}"
        self.tokens = {token}
        content = {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime, "refresh_token": "r"}
        return data(content)


@asynccontextmanager
async def serving(server: WebServer) -> AsyncIterator[WebServer]:
    """The server while it listens."""
    await server.listen()
    try:
        yield server
    finally:
        await server.stop()
