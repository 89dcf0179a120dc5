"""Phoenix's end of one MCP helper: starts it as a service, sends requests with their descriptors, takes its events."""

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
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from engine.ports.services import RunningService, ServiceRunner
from tools.clean import clean_line
from tools.contract import Captured
from tools.mcp_host.launch import connecting_command
from tools.mcp_host.lines import BadLine, decode_event, encode
from tools.mcp_host.protocol import AnyEvent, AnyRequest, Cancel, Failure, Progress, Reply
from tools.services import ServiceCommand

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

    def __init__(self, service: RunningService, control: socket.socket, folder: Path, on_event: OnEvent) -> None:
        self._service, self._socket, self._folder, self._on_event = service, control, folder, on_event
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._progress: dict[int, Callable[[Progress], None]] = {}
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
        progress: Callable[[Progress], None] | None = None,
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
        elif isinstance(event, Progress):
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
                        await self._writable()
                        continue
                    _close(descriptors)  # they are the helper's now
                    descriptors, line = (), line[sent:]
        except OSError:
            self._lose()
        finally:
            _close(descriptors)

    async def _writable(self) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self._socket, _set, ready)
        try:
            await ready
        finally:
            self._loop.remove_writer(self._socket)

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


async def open_helper(services: ServiceRunner, spill: Path, on_event: OnEvent) -> HelperLink:
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


async def _accept(listener: socket.socket, service: RunningService) -> socket.socket:
    """The connection of the helper itself."""
    accepting = asyncio.ensure_future(asyncio.get_running_loop().sock_accept(listener))
    ending = asyncio.ensure_future(service.ended())
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
