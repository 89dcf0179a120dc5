"""The one MCP helper of a Phoenix: started with the first server, started again when it ends, at last given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from msgspec import Raw

from engine.extensions.mcp.helper_link import HelperLink, RequestFailed, open_helper
from engine.extensions.mcp.server_asks import CANCEL, AskedConnection, ServerAsks
from engine.ports.services import ServiceRunner
from tools.files.own_files import make_folder
from tools.mcp_host.launch import missing
from tools.mcp_host.protocol import Answer, AnyEvent, Ask, AskClosed, AuthUrl, Credentials, Failure, Items, Log, Status

WAITS: Final = (0.0, 1.0, 2.0, 4.0)
"""Seconds before each start; with the last one its ends are no accident."""
STEADY: Final = 60.0
"""Seconds after which a helper counts as running well."""


class EventTaker(AskedConnection, Protocol):
    """A connection that events are for."""

    def take(self, event: Status | Items | Log | AuthUrl | Credentials) -> None:
        """Take an event of its server."""
        ...

    def lost(self, why: str) -> None:
        """Take the end of the helper."""
        ...


class HelperProcess:
    """Gives out the running helper and passes its events on."""

    def __init__(self, services: ServiceRunner, spill: Path) -> None:
        self.services = services
        self._spill = spill
        self.asks = ServerAsks()
        """Questions of servers to the user."""
        self._takers: dict[str, EventTaker] = {}
        self._link: HelperLink | None = None
        self._starting = asyncio.Lock()
        self._ends = 0
        self._began = 0.0
        self._watching: set[asyncio.Task[None]] = set()
        self.closed = False

    def add(self, key: str, taker: EventTaker) -> Callable[[], None]:
        """Pass the events of one server on; returns what ends that."""
        self._takers[key] = taker

        def forget() -> None:
            self._takers.pop(key, None)

        return forget

    @property
    def running(self) -> HelperLink | None:
        """The helper that runs; None without one."""
        return self._link if self._link is not None and not self._link.ended.is_set() else None

    async def link(self) -> HelperLink:
        """The running helper, started where there is none.

        Raises:
            RequestFailed: it cannot be started, or keeps ending.
        """
        async with self._starting:
            if (running := self.running) is not None:
                return running
            return await self._start()

    async def _start(self) -> HelperLink:
        loop = asyncio.get_running_loop()
        if self.closed:
            raise _failed("Phoenix ends")
        if why := missing():
            raise _failed(why)
        last = self._link
        if last is not None:
            if loop.time() - self._began > STEADY:
                self._ends = 0
            self._ends += 1
            if self._ends >= len(WAITS):
                raise _failed(f"the MCP helper keeps ending: {last.last_words() or 'it says nothing'}")
            await asyncio.sleep(WAITS[self._ends])
        try:
            await asyncio.to_thread(make_folder, self._spill)
            link = await open_helper(self.services, self._spill, self._event)
        except OSError as error:
            raise _failed(error.strerror or str(error)) from error
        self._link, self._began = link, loop.time()
        task = asyncio.create_task(self._watch(link))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        return link

    def forgive(self) -> None:
        """Try again to start a helper that kept ending: the user asked for it."""
        self._ends = 0

    async def _watch(self, link: HelperLink) -> None:
        await link.ended.wait()
        self.asks.lost()
        for taker in tuple(self._takers.values()):
            taker.lost("the MCP helper ended")
        await link.close(0.5)

    def _event(self, event: AnyEvent) -> None:
        match event:
            case Status() | Items() | Log() | AuthUrl() | Credentials():
                if (taker := self._takers.get(event.server)) is not None:
                    taker.take(event)
            case Ask():
                self._ask(event)
            case AskClosed(ask=ask):
                self.asks.closed(ask)
            case _:
                pass

    def _ask(self, asked: Ask) -> None:
        link, taker = self._link, self._takers.get(asked.server)
        if link is None:
            return

        def answer(result: Raw) -> None:
            if not link.ended.is_set():
                link.tell(Answer(id=0, ask=asked.ask, result=result))

        if taker is None:
            answer(CANCEL)
        else:
            self.asks.take(asked, taker, answer)

    async def close(self) -> None:
        """End the helper."""
        self.closed = True
        if self._link is not None:
            await self._link.close()


def _failed(message: str) -> RequestFailed:
    return RequestFailed(Failure(kind="failed", message=message))
