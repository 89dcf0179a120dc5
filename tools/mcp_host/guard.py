"""Watches the messages of one connection: floods are dropped, and a server that only asks is disconnected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from tools.mcp_host.limits import (
    COUNTED_FROM,
    MOST_CONTAINERS,
    MOST_UNANSWERED,
    MOST_VALUES,
    NOTIFICATION_BURST,
    NOTIFICATIONS_A_SECOND,
)
from tools.mcp_host.mending import MENDED, OF_SERVER, mend

PAUSE_EVERY = 100
PAUSE = 0.05
"""After so many dropped messages the helper stops reading for so many seconds, so a flood costs little time."""

UNREAD_LOOKS = 100
"""Pauses until a server that asks and does not read the answers is disconnected."""


class Incoming(Protocol):
    """A read stream of the SDK."""

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...


class Outgoing(Protocol):
    """A write stream of the SDK."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...


class TooManyValues(ValueError):
    """A message whose objects would fill the memory."""


class Bucket:
    """Admits a burst, and then so many a second."""

    def __init__(self, burst: int, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._left, self._at = float(burst), asyncio.get_running_loop().time()

    def admits(self) -> bool:
        """Take one, if there is one."""
        now = asyncio.get_running_loop().time()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class ValueCount:
    """Counts the values of a long message by their marks, before they become objects."""

    def __init__(self) -> None:
        self._size = self._values = self._containers = 0

    def add(self, data: bytes) -> None:
        """Count in a piece of the message.

        Raises:
            TooManyValues: there are more than any honest answer has.
        """
        self._size += len(data)
        containers = data.count(b"[") + data.count(b"{")
        self._containers += containers
        self._values += containers + data.count(b",")
        if self._size >= COUNTED_FROM and (self._values > MOST_VALUES or self._containers > MOST_CONTAINERS):
            raise TooManyValues(f"a message of more than {MOST_VALUES} values")


class Traffic:
    """State of one connection: time of the last message, requests of the server without an answer, its end."""

    def __init__(self, log: Callable[[str, str], None]) -> None:
        self.over = asyncio.Event()
        self.cause = ""
        self.last = asyncio.get_running_loop().time()
        self.log = log
        """Called with a level and a line."""
        self._bucket = Bucket(NOTIFICATION_BURST, NOTIFICATIONS_A_SECOND)
        self._unanswered: set[int | str] = set()
        self._asked: dict[int | str, str] = {}
        """Methods of our own requests whose answers are mended."""
        self._dropped = 0

    def end(self, cause: str) -> None:
        """Note the first cause of an end."""
        if not self.over.is_set():
            self.cause = cause
            self.over.set()

    def note(self) -> None:
        """Note that bytes came."""
        self.last = asyncio.get_running_loop().time()

    async def admits(self, item: SessionMessage | Exception) -> bool:
        """True for a message that the session shall see."""
        self.note()
        if isinstance(item, Exception):
            if self._bucket.admits():
                self.log("error", f"a message that is not MCP: {type(item).__name__}: {str(item)[:300]}")
                return False
            await self._drop()
            return False
        match item.message:
            case JSONRPCRequest(id=number):
                self._unanswered.add(number)
                return await self._answers_read()
            case JSONRPCNotification(method="notifications/cancelled", params=params):
                self._unanswered.discard(_number(params))
                return True
            case JSONRPCNotification() if not self._bucket.admits():
                await self._drop()
                return False
            case JSONRPCResponse(id=number) | JSONRPCError(id=int() | str() as number):
                self._mend(item.message, self._asked.pop(number, ""))
            case _:
                pass
        return True

    def _mend(self, answer: JSONRPCResponse | JSONRPCError, method: str) -> None:
        if isinstance(answer, JSONRPCResponse):
            answer.result = mend(method, answer.result) if method else answer.result
        elif answer.error.code in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
            answer.error.data = {OF_SERVER: True}

    def begin(self, item: SessionMessage) -> None:
        """Note a request of our own before it is sent."""
        if isinstance(item.message, JSONRPCRequest) and item.message.method in MENDED:
            self._asked[item.message.id] = item.message.method

    def sent(self, item: SessionMessage) -> None:
        """Note an answer to a request of the server."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
            self._unanswered.discard(item.message.id)

    async def _answers_read(self) -> bool:
        """Wait while too many requests of the server are unanswered; False if it does not read the answers."""
        waited = 0
        while len(self._unanswered) > MOST_UNANSWERED:
            if waited == UNREAD_LOOKS:
                self.end(f"it sent {MOST_UNANSWERED} requests and does not read the answers")
                return False
            waited += 1
            await asyncio.sleep(PAUSE)
        return True

    async def _drop(self) -> None:
        self._dropped += 1
        if self._dropped % PAUSE_EVERY == 1:
            self.log("warning", f"{self._dropped} messages dropped: they come faster than they can be read")
        if self._dropped % PAUSE_EVERY == 0:
            await asyncio.sleep(PAUSE)


def _number(params: dict[str, Any] | None) -> int | str:
    number = (params or {}).get("requestId")
    return number if isinstance(number, int | str) else ""


class GuardedReader:
    """A read stream of the SDK that gives what `traffic` admits."""

    def __init__(self, inner: Incoming, traffic: Traffic) -> None:
        self._inner, self._traffic = inner, traffic

    @property
    def last_context(self) -> object:
        """Context variables of the sender, which the SDK hands to handlers."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next admitted message.

        Raises:
            anyio.EndOfStream: the connection ended.
        """
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                self._traffic.end("it closed the connection")
                raise
            if await self._traffic.admits(item):
                return item
            if self._traffic.over.is_set():
                raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class GuardedWriter:
    """A write stream of the SDK that tells `traffic` about answers."""

    def __init__(self, inner: Outgoing, traffic: Traffic) -> None:
        self._inner, self._traffic = inner, traffic

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        self._traffic.begin(item)
        await self._inner.send(item)
        self._traffic.sent(item)

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


Streams: TypeAlias = tuple[GuardedReader, GuardedWriter]
