"""Requests to a server: each with its limits of time, its result mapped to what Phoenix shows and sends."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mcp_types import PromptReference, ResourceTemplateReference

from tools.clean import clean_line
from tools.mcp_host.asks import Asks
from tools.mcp_host.limited import ProgressMeter, limited
from tools.mcp_host.limits import LONGEST_DESCRIPTION, LONGEST_URI
from tools.mcp_host.protocol import Call, Complete, Completions, Content, Event, GetPrompt, Items, ListItems, Read
from tools.mcp_host.results import ResultMapper
from tools.mcp_host.server import Server
from tools.mcp_host.session import Session
from tools.mcp_host.spill import SpillFolder

T = TypeVar("T")
LIST_SECONDS = 60.0


class ServerRequests:
    """Performs what Phoenix asks of one server."""

    def __init__(self, spill: SpillFolder, asks: Asks, send: Callable[[Event], None]) -> None:
        self._spill, self._asks, self._send = spill, asks, send

    async def run(self, server: Server, request: ListItems | Call | Read | GetPrompt | Complete) -> object:
        """The answer.

        Raises:
            Failed: a limit passed, or the server is not there; or any error of the SDK.
        """
        match request:
            case ListItems():
                return await self._list(server, request)
            case Call():
                return await self._call(server, request)
            case Read():
                return await self._read(server, request)
            case GetPrompt():
                return await self._prompt(server, request)
            case Complete():
                return await self._complete(server, request)

    async def _call(self, server: Server, request: Call) -> Content:
        meter = ProgressMeter(request.id, self._send)

        async def told(progress: float, total: float | None, message: str | None) -> None:
            meter.note(progress, total, clean_line((message or "")[:LONGEST_DESCRIPTION]))

        async def work(session: Session) -> Content:
            result = await session.client.call_tool(request.tool, request.args, progress_callback=told)
            return self._mapper(server, request.text_limit).tool(request.tool, result, session.schemas)

        def heard() -> float:
            return max(meter.last, server.traffic.last if server.traffic else 0.0)

        try:
            return await self._limited(
                server, server.with_session(work), request.timeout_ms / 1000, request.idle_ms / 1000, heard
            )
        finally:
            meter.close()

    async def _read(self, server: Server, request: Read) -> Content:
        async def work(session: Session) -> Content:
            result = await session.client.read_resource(request.uri)
            return self._mapper(server, request.text_limit).resource(result)

        return await self._limited(server, server.with_session(work), request.timeout_ms / 1000)

    async def _prompt(self, server: Server, request: GetPrompt) -> object:
        async def work(session: Session) -> object:
            result = await session.client.get_prompt(request.prompt, request.args)
            return self._mapper(server, request.text_limit).prompt(result)

        return await self._limited(server, server.with_session(work), request.timeout_ms / 1000)

    async def _complete(self, server: Server, request: Complete) -> Completions:
        template = "://" in request.ref
        ref = ResourceTemplateReference(uri=request.ref) if template else PromptReference(name=request.ref)

        async def work(session: Session) -> Completions:
            argument = {"name": request.argument, "value": request.value}
            result = await session.client.complete(ref, argument, request.context or None)
            values = [clean_line(value[:LONGEST_URI]) for value in result.completion.values[:100]]
            return Completions(values=values, more=bool(result.completion.has_more))

        return await self._limited(server, server.with_session(work), request.timeout_ms / 1000)

    async def _list(self, server: Server, request: ListItems) -> Items:
        if request.what == "log":
            return Items(server=request.server, what="log", lines=server.log.lines)

        async def work(session: Session) -> Items:
            known = session.lists.get(request.what)
            return known if known is not None and not request.refresh else await session.refresh(request.what)

        return await self._limited(server, server.with_session(work), LIST_SECONDS)

    def _mapper(self, server: Server, limit: int) -> ResultMapper:
        return ResultMapper(server.name, self._spill, limit)

    async def _limited(
        self,
        server: Server,
        work: Coroutine[Any, Any, T],
        total: float,
        idle: float = float("inf"),
        heard: Callable[[], float] = lambda: 0.0,
    ) -> T:
        return await limited(
            work, total=total, idle=idle, heard=heard, asked=lambda: self._asks.waiting(server.spec.server)
        )
