"""The MCP helper as a process, asked as Phoenix asks it; servers are processes or scripts of the test."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tests.support.forks import HELPER, load_helper, shim_command
from tests.support.waiting import PATIENCE, poll
from tools.mcp_host.link import command, decode_event, encode
from tools.mcp_host.protocol import (
    AnyEvent,
    AnyRequest,
    CallTool,
    Connect,
    Connected,
    Content,
    Items,
    Reply,
    ServerStatus,
    ShutdownHelper,
    TextPart,
)

ROOT = Path(__file__).parents[2]
KINDS = shim_command("tests.support.mcp_kinds")
E = TypeVar("E", bound=AnyEvent)
T = TypeVar("T")


class Refused(AssertionError):
    """A reply that is an error."""

    def __init__(self, reply: Reply) -> None:
        assert reply.error is not None
        super().__init__(reply.error)
        self.error = reply.error


class Helper:
    """Phoenix's end of one helper."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, folder: Path) -> None:
        self.process, self.folder, self.control = process, folder, control
        self.events: list[AnyEvent] = []
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self.listens = asyncio.Event()

    async def listen(self) -> None:
        """Take what the helper sends, until it ends."""
        reader, writer = await asyncio.open_unix_connection(sock=self.control.dup(), limit=2 << 20)
        self._writer = writer
        self.listens.set()
        while line := await reader.readline():
            event = decode_event(line, self.folder)
            if isinstance(event, Reply):
                waiting = self._waiting.pop(event.id)
                if not waiting.done():
                    waiting.set_result(event)
            else:
                self.events.append(event)
        writer.close()

    def number(self) -> int:
        """An id for a request."""
        return next(self._numbers)

    def begin(self, request: AnyRequest, descriptors: tuple[int, ...] = ()) -> asyncio.Future[Reply]:
        """Send a request; its reply comes with the future."""
        line = encode(request, self.folder)
        future = self._waiting[request.id] = asyncio.get_running_loop().create_future()
        if descriptors:
            assert socket.send_fds(self.control, [line], descriptors) == len(line)
            for descriptor in descriptors:
                os.close(descriptor)
        else:
            assert self._writer is not None, "it listens first"
            self._writer.write(line)
        return future

    async def reply(self, request: AnyRequest, descriptors: tuple[int, ...] = ()) -> Reply:
        """The reply to a request."""
        return await asyncio.wait_for(self.begin(request, descriptors), PATIENCE)

    async def ask(self, request: AnyRequest, kind: type[T], descriptors: tuple[int, ...] = ()) -> T:
        """The answer to a request.

        Raises:
            Refused: it is an error.
        """
        reply = await self.reply(request, descriptors)
        if reply.error is not None:
            raise Refused(reply)
        return msgspec.json.decode(reply.ok, type=kind)

    async def refusal(self, request: AnyRequest) -> str:
        """Kind of the error that answers a request."""
        reply = await self.reply(request)
        assert reply.error is not None, reply
        return reply.error.kind

    async def call(self, tool: str, args: dict[str, Any] | None = None, *, server: str = "s", **more: Any) -> Content:
        """The result of a tool."""
        return await self.ask(CallTool(id=self.number(), server=server, tool=tool, args=args or {}, **more), Content)

    async def text(self, tool: str, args: dict[str, Any] | None = None, **more: Any) -> str:
        """The texts of a result that the model reads."""
        content = await self.call(tool, args, **more)
        return "\n".join(part.text for part in content.parts if isinstance(part, TextPart) and part.for_model)

    async def event(self, kind: type[E], holds: Callable[[E], bool] = lambda _: True) -> E:
        """The first event of a kind for which `holds` is true."""

        def found() -> list[E]:
            return [event for event in self.events if isinstance(event, kind) and holds(event)]

        assert await poll(found), self.events[-5:]
        return found()[0]

    async def connect(self, pipes: tuple[int, int], *, server: str = "s", **more: Any) -> Connected:
        """Connect a stdio server by its output and its input."""
        return await self.ask(Connect(id=self.number(), server=server, **more), Connected, pipes)

    async def connect_url(self, url: str, *, server: str = "s", **more: Any) -> Connected:
        """Connect a server over HTTP."""
        more.setdefault("transport", "http")
        return await self.ask(Connect(id=self.number(), server=server, url=url, **more), Connected)

    def items(self, what: str, server: str = "s") -> Items:
        """The newest list of a server."""
        found = [e for e in self.events if isinstance(e, Items) and e.what == what and e.server == server]
        return found[-1]

    def states(self, server: str = "s") -> list[str]:
        """All states of a server, in order."""
        return [event.state for event in self.events if isinstance(event, ServerStatus) and event.server == server]

    def memory(self) -> int:
        """The most bytes that the process ever had in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def start_helper(
    folder: Path, *, anew: bool = False, **environment: str
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process, a fork or one with an interpreter of its own, and Phoenix's end of its socket."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    argv = command(theirs.fileno(), folder)
    if not anew:
        load_helper()
        argv = (*shim_command(HELPER), *argv[argv.index("--socket") :])
    environment = {"PATH": os.defpath, "HOME": str(folder), **environment}
    with theirs:
        process = subprocess.Popen(
            argv, pass_fds=[theirs.fileno()], env=environment, cwd=folder, stderr=subprocess.PIPE
        )
    return process, ours


@asynccontextmanager
async def helper(folder: Path, *, anew: bool = False, **environment: str) -> AsyncIterator[Helper]:
    """A running helper with its spill folder; it must end by itself when its socket closes."""
    process, ours = start_helper(folder, anew=anew, **environment)
    running = Helper(process, ours, folder)
    listening = asyncio.ensure_future(running.listen())
    await running.listens.wait()
    try:
        yield running
        if process.poll() is None:
            await running.reply(ShutdownHelper(id=running.number()))
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        ours.close()
        ended = await poll(lambda: process.poll() is not None, 15)
        if not ended:
            process.kill()
        _, errors = process.communicate()
        await asyncio.wait({listening}, timeout=PATIENCE)
        listening.cancel()
    assert ended, "the helper did not end with its socket"
    assert b"Traceback" not in errors, errors.decode()


def open_server(argv: Sequence[str], cwd: Path) -> tuple[subprocess.Popen[bytes], tuple[int, int]]:
    """Start a stdio server; returns it with its output and its input, which belong to the caller."""
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd)
    assert process.stdin is not None
    assert process.stdout is not None
    pipes = os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())
    process.stdin.close()
    process.stdout.close()
    return process, pipes


def serve_kinds(port: int, *words: str) -> subprocess.Popen[bytes]:
    """The server of all kinds of results, over HTTP."""
    return subprocess.Popen([*KINDS, "http", str(port), *words], cwd=ROOT)


def mode_of(file: str) -> int:
    """Permissions of a file."""
    return Path(file).stat().st_mode & 0o777


def content_of(file: str) -> bytes:
    """Content of a file."""
    return Path(file).read_bytes()


def files_in(folder: Path) -> list[str]:
    """Names in a folder."""
    return sorted(path.name for path in folder.iterdir())
