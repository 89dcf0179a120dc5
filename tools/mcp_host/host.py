"""The helper: it serves the requests of Phoenix, and keeps the servers."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from mcp_types import PromptReference, ResourceTemplateReference

from tools.clean import clean_line
from tools.mcp_host.catalogue import ResultMapper
from tools.mcp_host.causes import ProgressMeter, ServerFailed, SpillFolder, failure, limit_time
from tools.mcp_host.link import Link
from tools.mcp_host.protocol import (
    DESCRIPTORS,
    LONGEST_DESCRIPTION,
    LONGEST_URI,
    MOST_CALLS,
    MOST_SERVERS,
    Answer,
    AnyRequest,
    Auth,
    CallProgress,
    CallTool,
    Cancel,
    Complete,
    Completions,
    Connect,
    Connected,
    Content,
    Disconnect,
    Failure,
    GetPrompt,
    HelperEvent,
    Items,
    ListItems,
    Log,
    Read,
    Reply,
    SetRoots,
    ShutdownHelper,
    raw,
)
from tools.mcp_host.server import Asks, McpSession, Server
from tools.mcp_host.transports import LinePipe, definition_problem

T = TypeVar("T")
LIST_SECONDS = 60.0


class ServerRequests:
    """Performs what Phoenix asks of one server."""

    def __init__(self, spill: SpillFolder, asks: Asks, send: Callable[[HelperEvent], None]) -> None:
        self._spill, self._asks, self._send = spill, asks, send

    async def run(self, server: Server, request: ListItems | CallTool | Read | GetPrompt | Complete) -> object:
        """The answer.

        Raises:
            Failed: a limit passed, or the server is not there; or any error of the SDK.
        """
        match request:
            case ListItems():
                return await self._list(server, request)
            case CallTool():
                return await self._call(server, request)
            case Read():
                return await self._read(server, request)
            case GetPrompt():
                return await self._prompt(server, request)
            case Complete():
                return await self._complete(server, request)

    async def _call(self, server: Server, request: CallTool) -> Content:
        meter = ProgressMeter(request.id, self._send)

        async def note_progress(progress: float, total: float | None, message: str | None) -> None:
            meter.note(progress, total, clean_line((message or "")[:LONGEST_DESCRIPTION]))

        async def work(session: McpSession) -> Content:
            result = await session.client.call_tool(request.tool, request.args, progress_callback=note_progress)
            return self._mapper(server, request.text_limit).tool(request.tool, result, session.schemas)

        def find_last_sign() -> float:
            return max(meter.last, server.traffic.last if server.traffic else 0.0)

        try:
            return await self._limit_time(
                server, server.with_session(work), request.timeout_ms / 1000, request.idle_ms / 1000, find_last_sign
            )
        finally:
            meter.close()

    async def _read(self, server: Server, request: Read) -> Content:
        async def work(session: McpSession) -> Content:
            result = await session.client.read_resource(request.uri)
            return self._mapper(server, request.text_limit).resource(result)

        return await self._limit_time(server, server.with_session(work), request.timeout_ms / 1000)

    async def _prompt(self, server: Server, request: GetPrompt) -> object:
        async def work(session: McpSession) -> object:
            result = await session.client.get_prompt(request.prompt, request.args)
            return self._mapper(server, request.text_limit).prompt(result)

        return await self._limit_time(server, server.with_session(work), request.timeout_ms / 1000)

    async def _complete(self, server: Server, request: Complete) -> Completions:
        template = "://" in request.ref
        ref = ResourceTemplateReference(uri=request.ref) if template else PromptReference(name=request.ref)

        async def work(session: McpSession) -> Completions:
            argument = {"name": request.argument, "value": request.value}
            result = await session.client.complete(ref, argument, request.context or None)
            values = [clean_line(value[:LONGEST_URI]) for value in result.completion.values[:100]]
            return Completions(values=values, more=bool(result.completion.has_more))

        return await self._limit_time(server, server.with_session(work), request.timeout_ms / 1000)

    async def _list(self, server: Server, request: ListItems) -> Items:
        if request.what == "log":
            return Items(server=request.server, what="log", lines=server.log.lines)

        async def work(session: McpSession) -> Items:
            known = session.lists.get(request.what)
            return known if known is not None and not request.refresh else await session.refresh(request.what)

        return await self._limit_time(server, server.with_session(work), LIST_SECONDS)

    def _mapper(self, server: Server, limit: int) -> ResultMapper:
        return ResultMapper(server.name, self._spill, limit)

    async def _limit_time(
        self,
        server: Server,
        work: Coroutine[Any, Any, T],
        total: float,
        idle: float = float("inf"),
        heard: Callable[[], float] = lambda: 0.0,
    ) -> T:
        return await limit_time(
            work, total=total, idle=idle, heard=heard, asked=lambda: self._asks.waiting(server.spec.server)
        )


DROPPABLE = (CallProgress, Log)


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
        ended: ShutdownHelper | None = None
        async for request in self._link.requests():
            if isinstance(request, ShutdownHelper):
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

    def _send(self, message: HelperEvent) -> None:
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
                server = self._servers.pop(request.server, None)
                if server is not None:
                    await server.close()
                return server is not None
            case Cancel():
                task = self._running.get(request.call)
                return task is not None and task.cancel()
            case Answer():
                return self._asks.answer(request.ask, request.result)
            case Auth():
                return await self._authorize(request)
            case SetRoots():
                session, _ = await self._find_server(request.server).connect_session()
                await session.replace_roots(request.roots)
                return None
            case ListItems() | CallTool() | Read() | GetPrompt() | Complete():
                return await self._use(request)
            case _:
                return None

    async def _use(self, request: ListItems | CallTool | Read | GetPrompt | Complete) -> object:
        server = self._find_server(request.server)
        if self._busy[request.server] > MOST_CALLS:
            raise ServerFailed("limit", f"MCP server '{server.name}' already has {MOST_CALLS} requests to work on.")
        return await self._requests.run(server, request)

    async def _connect(self, request: Connect, descriptors: list[int]) -> Connected:
        if _is_stdio(request) and len(descriptors) < DESCRIPTORS:
            _close(descriptors)
            raise ServerFailed("invalid", "A stdio server came without its descriptors.")
        if not descriptors and (problem := definition_problem(request)):
            raise ServerFailed("invalid", f"MCP server '{request.name or request.server}': {problem}")
        old = self._servers.pop(request.server, None)
        if old is not None:
            await old.close(quiet=True)
        if len(self._servers) >= MOST_SERVERS:
            _close(descriptors)
            raise ServerFailed("limit", f"{MOST_SERVERS} MCP servers are connected already.")
        pipe = LinePipe(descriptors[0], descriptors[1]) if descriptors else None
        server = self._servers[request.server] = Server(request, pipe, self._asks, self._send)
        _, connected = await server.connect_session()
        return connected

    async def _authorize(self, request: Auth) -> bool:
        server = self._find_server(request.server)
        if server.spec.transport == "stdio":
            raise ServerFailed("invalid", f"MCP server '{server.name}' runs here: there is nothing to sign in to.")
        match request.action:
            case "start":
                await server.sign_in()
            case "paste":
                if problem := server.paste(request.url):
                    raise ServerFailed("invalid", problem)
            case "forget":
                await server.sign_out()
        return True

    def _find_server(self, name: str) -> Server:
        server = self._servers.get(name)
        if server is None:
            raise ServerFailed("invalid", f"No MCP server has the key {name!r}.")
        return server


def _is_stdio(request: AnyRequest) -> bool:
    return isinstance(request, Connect) and request.transport == "stdio"


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
