"""The helper: takes the requests of Phoenix and answers each once, whatever servers do meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from pathlib import Path

from tools.mcp_host.asks import Asks
from tools.mcp_host.causes import Failed, failure
from tools.mcp_host.limits import MOST_CALLS, MOST_SERVERS
from tools.mcp_host.link import Link
from tools.mcp_host.pipes import LinePipe
from tools.mcp_host.protocol import (
    DESCRIPTORS,
    Answer,
    AnyRequest,
    Auth,
    Call,
    Cancel,
    Complete,
    Connect,
    Connected,
    Disconnect,
    Event,
    Failure,
    GetPrompt,
    ListItems,
    Log,
    Progress,
    Read,
    Reply,
    SetRoots,
    Shutdown,
    raw,
)
from tools.mcp_host.requests import ServerRequests
from tools.mcp_host.server import Server
from tools.mcp_host.spill import SpillFolder
from tools.mcp_host.web import definition_problem

DROPPABLE = (Progress, Log)


class Host:
    """All servers of one Phoenix."""

    def __init__(self, link: Link, folder: Path) -> None:
        self._link = link
        self._asks = Asks(self._send)
        self._requests = ServerRequests(SpillFolder(folder), self._asks, self._send)
        self._servers: dict[str, Server] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._busy: Counter[str] = Counter()

    async def run(self) -> None:
        """Serve until Phoenix shuts the helper down or its socket closes."""
        ended: Shutdown | None = None
        async for request in self._link.requests():
            if isinstance(request, Shutdown):
                ended = request
                break
            descriptors = self._link.take_descriptors(DESCRIPTORS) if _is_stdio(request) else []
            task = asyncio.ensure_future(self._serve(request, descriptors))
            self._running[request.id] = task
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*(server.close() for server in self._servers.values()), return_exceptions=True)
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        if ended is not None:
            self._send(Reply(id=ended.id))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._link.flush(), 1.0)

    def _send(self, message: Event) -> None:
        self._link.send(message, droppable=isinstance(message, DROPPABLE))

    async def _serve(self, request: AnyRequest, descriptors: list[int]) -> None:
        server = getattr(request, "server", "")
        self._busy[server] += 1
        try:
            reply = Reply(id=request.id, ok=raw(await self._answer(request, descriptors)))
        except asyncio.CancelledError:
            reply = Reply(id=request.id, error=Failure(kind="cancelled", message="Cancelled."))
        except Exception as error:  # noqa: BLE001 - whatever a server makes the SDK raise fails its request alone
            known = self._servers.get(server)
            reply = Reply(id=request.id, error=failure(error, known.name if known else server))
        finally:
            self._busy[server] -= 1
            self._running.pop(request.id, None)
        try:
            self._send(reply)
        except (ValueError, OSError) as error:  # too large, or no room for its file
            message = f"The answer could not be handed over: {error}"
            self._send(Reply(id=request.id, error=Failure(kind="internal", message=message)))

    async def _answer(self, request: AnyRequest, descriptors: list[int]) -> object:
        match request:
            case Connect():
                return await self._connect(request, descriptors)
            case Disconnect():
                return await self._disconnect(request.server)
            case Cancel():
                return self._cancel(request.call)
            case Answer():
                return self._asks.answer(request.ask, request.result)
            case Auth():
                return await self._authorize(request)
            case SetRoots():
                session, _ = await self._known(request.server).connected()
                await session.replace_roots(request.roots)
                return None
            case ListItems() | Call() | Read() | GetPrompt() | Complete():
                return await self._use(request)
            case _:
                return None

    async def _disconnect(self, name: str) -> bool:
        server = self._servers.pop(name, None)
        if server is not None:
            await server.close()
        return server is not None

    def _cancel(self, number: int) -> bool:
        task = self._running.get(number)
        return task is not None and task.cancel()

    async def _use(self, request: ListItems | Call | Read | GetPrompt | Complete) -> object:
        server = self._known(request.server)
        if self._busy[request.server] > MOST_CALLS:
            raise Failed("limit", f"MCP server '{server.name}' already has {MOST_CALLS} requests to work on.")
        return await self._requests.run(server, request)

    async def _connect(self, request: Connect, descriptors: list[int]) -> Connected:
        if _is_stdio(request) and len(descriptors) < DESCRIPTORS:
            _close(descriptors)
            raise Failed("invalid", "A stdio server came without its descriptors.")
        if not descriptors and (problem := definition_problem(request)):
            raise Failed("invalid", f"MCP server '{request.name or request.server}': {problem}")
        old = self._servers.pop(request.server, None)
        if old is not None:
            await old.close(quiet=True)
        if len(self._servers) >= MOST_SERVERS:
            _close(descriptors)
            raise Failed("limit", f"{MOST_SERVERS} MCP servers are connected already.")
        pipe = LinePipe(descriptors[0], descriptors[1]) if descriptors else None
        server = self._servers[request.server] = Server(request, pipe, self._asks, self._send)
        _, connected = await server.connected()
        return connected

    async def _authorize(self, request: Auth) -> bool:
        server = self._known(request.server)
        if server.spec.transport == "stdio":
            raise Failed("invalid", f"MCP server '{server.name}' runs here: there is nothing to sign in to.")
        match request.action:
            case "start":
                await server.sign_in()
            case "paste":
                if problem := server.paste(request.url):
                    raise Failed("invalid", problem)
            case "forget":
                await server.sign_out()
        return True

    def _known(self, name: str) -> Server:
        server = self._servers.get(name)
        if server is None:
            raise Failed("invalid", f"No MCP server has the key {name!r}.")
        return server


def _is_stdio(request: AnyRequest) -> bool:
    return isinstance(request, Connect) and request.transport == "stdio"


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
