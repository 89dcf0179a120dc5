"""The one MCP helper of a Phoenix: its start as a service, requests and events, a new start when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from engine.extensions.mcp.server_asks import CANCEL, AskingServer, ServerAsks
from tools.clean import clean_line
from tools.contract import Captured
from tools.files.own_files import make_folder
from tools.mcp_host.link import BadLine, connecting_command, decode_event, encode, missing
from tools.mcp_host.protocol import (
    Answer,
    AnyEvent,
    AnyRequest,
    AskClosed,
    AuthUrl,
    CallProgress,
    Cancel,
    Failure,
    Items,
    Log,
    NewCredentials,
    Reply,
    ServerAsk,
    ServerStatus,
)
from tools.services import ServiceCommand

if TYPE_CHECKING:
    from tools.process.service import DuplexService, SupervisedServices

START: Final = 30.0
"""Seconds until the helper has connected."""
READ: Final = 256 * 1024
LONGEST: Final = 1024 * 1024
"""Bytes without an end of line after which the helper is taken for broken."""
MOST_PATH: Final = 90
"""Bytes of a socket's path that every system takes."""
_IN_FILE: Final = b'{"in_file"'
T = TypeVar("T")
OnEvent: TypeAlias = Callable[[AnyEvent], None]


class RequestFailed(Exception):
    """A request that the helper answered with an error, or could not answer any more."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


GONE: Final = Failure(kind="gone", message="the MCP helper ended")


class HelperLink:
    """One running helper; `ended` is set when it is gone."""

    def __init__(self, service: DuplexService, control: socket.socket, folder: Path, on_event: OnEvent) -> None:
        self._service, self._socket, self._folder, self._on_event = service, control, folder, on_event
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._progress: dict[int, Callable[[CallProgress], None]] = {}
        self._outgoing: asyncio.Queue[tuple[bytes, tuple[int, ...]]] = asyncio.Queue()
        self.ended = asyncio.Event()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]

    @property
    def pid(self) -> int:
        """Process id of the helper."""
        return self._service.pid

    async def ask(
        self,
        request: AnyRequest,
        kind: type[T],
        *,
        descriptors: tuple[int, ...] = (),
        progress: Callable[[CallProgress], None] | None = None,
    ) -> T:
        """Send a request, its id replaced, and return the answer; cancelled, the request is cancelled too.

        `descriptors` belong to the helper from now on.

        Raises:
            RequestFailed: the answer is an error, or the helper is gone.
        """
        number = next(self._numbers)
        future: asyncio.Future[Reply] = self._loop.create_future()
        try:
            line = encode(replace(request, id=number), self._folder)
        except (BadLine, OSError) as error:
            _close(descriptors)
            raise RequestFailed(Failure(kind="limit", message=f"the request cannot be sent: {error}")) from error
        if self.ended.is_set():
            _close(descriptors)
            raise RequestFailed(GONE)
        self._waiting[number] = future
        if progress is not None:
            self._progress[number] = progress
        self._outgoing.put_nowait((line, descriptors))
        try:
            reply = await future
        except asyncio.CancelledError:
            self._send(Cancel(id=next(self._numbers), call=number))
            raise
        finally:
            self._waiting.pop(number, None)
            self._progress.pop(number, None)
        if reply.error is not None:
            raise RequestFailed(reply.error)
        return msgspec.json.decode(reply.ok, type=kind)

    def _send(self, request: AnyRequest) -> None:
        with contextlib.suppress(BadLine, OSError):
            self._outgoing.put_nowait((encode(request, self._folder), ()))

    def tell(self, request: AnyRequest) -> None:
        """Send a request, its id replaced, without waiting for the answer."""
        self._send(replace(request, id=next(self._numbers)))

    async def close(self, grace: float = 1.0) -> None:
        """End the helper and everything it was asked."""
        self._lose()
        await self._service.end(grace)

    def last_words(self) -> str:
        """The last line of its stderr, cleaned."""
        return _last_line(self._service.stderr)

    async def _read(self) -> None:
        rest = bytearray()
        try:
            while chunk := await self._loop.sock_recv(self._socket, READ):
                rest += chunk
                while (end := rest.find(b"\n")) >= 0:
                    line = bytes(rest[:end])
                    del rest[: end + 1]
                    await self._take(line)
                if len(rest) > LONGEST:
                    break
        except (OSError, BadLine):
            pass  # the two ends disagree, or it is gone: nothing after it can be relied on
        finally:
            self._lose()

    async def _take(self, line: bytes) -> None:
        if line.startswith(_IN_FILE):  # up to 24 MB
            event = await asyncio.to_thread(decode_event, line, self._folder)
        else:
            event = decode_event(line, self._folder)
        if isinstance(event, Reply):
            waiting = self._waiting.get(event.id)
            if waiting is not None and not waiting.done():
                waiting.set_result(event)
        elif isinstance(event, CallProgress):
            if (tell := self._progress.get(event.id)) is not None:
                tell(event)
        else:
            self._on_event(event)

    async def _write(self) -> None:
        descriptors: tuple[int, ...] = ()
        try:
            while True:
                line, descriptors = await self._outgoing.get()
                while line:
                    try:
                        sent = socket.send_fds(self._socket, [line], descriptors)
                    except BlockingIOError:
                        ready: asyncio.Future[None] = self._loop.create_future()
                        self._loop.add_writer(self._socket, _set, ready)
                        try:
                            await ready
                        finally:
                            self._loop.remove_writer(self._socket)
                        continue
                    _close(descriptors)  # they are the helper's now
                    descriptors, line = (), line[sent:]
        except OSError:
            self._lose()
        finally:
            _close(descriptors)

    def _lose(self) -> None:
        if self.ended.is_set():
            return
        self.ended.set()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._socket.close()
        while not self._outgoing.empty():
            _close(self._outgoing.get_nowait()[1])
        for number, future in self._waiting.items():
            if not future.done():
                future.set_result(Reply(id=number, error=GONE))


async def open_helper(services: SupervisedServices, spill: Path, on_event: OnEvent) -> HelperLink:
    """Start the helper and return once it has connected.

    Raises:
        OSError: it cannot be started, or ended at once.
    """
    base = None if len(os.fsencode(tempfile.gettempdir())) < MOST_PATH - 30 else "/tmp"
    folder = Path(tempfile.mkdtemp(prefix="phoenix-mcp-", dir=base))
    listener = socket.socket(socket.AF_UNIX)
    try:
        path = folder / "helper"
        listener.bind(str(path))
        listener.listen(1)
        listener.setblocking(False)
        service = await services.open(ServiceCommand(connecting_command(path, spill), spill))
        try:
            control = await _accept(listener, service)
        except BaseException:
            await service.end(0)
            raise
        return HelperLink(service, control, spill, on_event)
    finally:
        listener.close()
        _remove(folder)


async def _accept(listener: socket.socket, service: DuplexService) -> socket.socket:
    """The connection of the helper itself."""
    accepting = asyncio.ensure_future(asyncio.get_running_loop().sock_accept(listener))
    ending = asyncio.ensure_future(service.wait_ended())
    try:
        await asyncio.wait({accepting, ending}, timeout=START, return_when=asyncio.FIRST_COMPLETED)
        if not accepting.done():
            raise OSError(0, f"the MCP helper did not start: {_last_line(service.stderr) or 'it is silent'}")
        control, _ = accepting.result()
    finally:
        accepting.cancel()
        ending.cancel()
    if sys.platform == "linux":
        pid = struct.unpack("3i", control.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        if pid != service.pid:
            control.close()
            raise OSError(0, "another program connected in place of the MCP helper")
    control.setblocking(False)
    return control


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / "helper").unlink(missing_ok=True)
        folder.rmdir()


def _last_line(captured: Captured) -> str:
    lines = (captured.head + captured.tail).decode("utf-8", "replace").strip().splitlines()
    return clean_line(lines[-1])[:200] if lines else ""


def _close(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)


WAITS: Final = (0.0, 1.0, 2.0, 4.0)
"""Seconds before each start; with the last one its ends are no accident."""
STEADY: Final = 60.0
"""Seconds after which a helper counts as running well."""


ServerEvent: TypeAlias = ServerStatus | Items | Log | AuthUrl | NewCredentials


class HelpedServer(Struct, frozen=True):
    """A server that the helper talks with, and who takes what happens to it."""

    asking: AskingServer
    take: Callable[[ServerEvent], None]
    """Takes an event of the server."""
    take_loss: Callable[[str], None]
    """Takes the end of the helper with its reason."""


class HelperProcess:
    """Gives out the running helper and passes its events on."""

    def __init__(self, services: SupervisedServices, spill: Path) -> None:
        self.services = services
        self._spill = spill
        self.asks = ServerAsks()
        """Questions of servers to the user."""
        self._servers: dict[str, HelpedServer] = {}
        self._link: HelperLink | None = None
        self._starting = asyncio.Lock()
        self._ends = 0
        self._began = 0.0
        self._watching: set[asyncio.Task[None]] = set()
        self.closed = False

    def add(self, key: str, server: HelpedServer) -> Callable[[], None]:
        """Pass the events of one server on; returns what ends that."""
        self._servers[key] = server

        def forget() -> None:
            self._servers.pop(key, None)

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
            raise _make_failure("Phoenix ends")
        if why := missing():
            raise _make_failure(why)
        last = self._link
        if last is not None:
            if loop.time() - self._began > STEADY:
                self._ends = 0
            self._ends += 1
            if self._ends >= len(WAITS):
                raise _make_failure(f"the MCP helper keeps ending: {last.last_words() or 'it says nothing'}")
            await asyncio.sleep(WAITS[self._ends])
        try:
            await asyncio.to_thread(make_folder, self._spill)
            link = await open_helper(self.services, self._spill, self._event)
        except OSError as error:
            raise _make_failure(error.strerror or str(error)) from error
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
        self.asks.withdraw_all()
        for server in tuple(self._servers.values()):
            server.take_loss("the MCP helper ended")
        await link.close(0.5)

    def _event(self, event: AnyEvent) -> None:
        match event:
            case ServerStatus() | Items() | Log() | AuthUrl() | NewCredentials():
                if (server := self._servers.get(event.server)) is not None:
                    server.take(event)
            case ServerAsk():
                self._ask(event)
            case AskClosed(ask=ask):
                self.asks.withdraw(ask)
            case _:
                pass

    def _ask(self, asked: ServerAsk) -> None:
        link, server = self._link, self._servers.get(asked.server)
        if link is None:
            return

        def answer(result: Raw) -> None:
            if not link.ended.is_set():
                link.tell(Answer(id=0, ask=asked.ask, result=result))

        if server is None:
            answer(CANCEL)
        else:
            self.asks.take(asked, server.asking, answer)

    async def close(self) -> None:
        """End the helper."""
        self.closed = True
        if self._link is not None:
            await self._link.close()


def _make_failure(message: str) -> RequestFailed:
    return RequestFailed(Failure(kind="failed", message=message))
