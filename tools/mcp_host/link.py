"""The socket between Phoenix and the MCP helper: its command, its lines, and the helper's end; needs no SDK."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tools.mcp_host.protocol import LONGEST_LINE, LONGEST_MESSAGE, AnyEvent, AnyRequest, HelperEvent

M = TypeVar("M")
_SAFE: Final = re.compile(r"[A-Za-z0-9_-]{1,40}\.json")
PREFIX: Final = "message-"


class Elsewhere(Struct, forbid_unknown_fields=True):
    """A line in place of a message that is in this file of the spill folder."""

    in_file: str


class BadLine(ValueError):
    """A line that is no message."""


@cache
def _encoder() -> msgspec.json.Encoder:
    return msgspec.json.Encoder()


def encode(message: object, folder: Path) -> bytes:
    """One line with its end; the reader deletes the file it may name.

    Raises:
        BadLine: the message is larger than any.
        OSError: its file cannot be written.
    """
    line = _encoder().encode(message)
    if len(line) < LONGEST_LINE:
        return line + b"\n"
    if len(line) > LONGEST_MESSAGE:
        raise BadLine(f"a message of {len(line)} bytes")
    descriptor, path = tempfile.mkstemp(".json", PREFIX, folder)  # mode 0600
    with os.fdopen(descriptor, "wb") as file:
        file.write(line)
    return _encoder().encode(Elsewhere(os.path.basename(path))) + b"\n"  # noqa: PTH119 - a name alone


@cache
def _requests() -> msgspec.json.Decoder[AnyRequest]:
    return msgspec.json.Decoder(AnyRequest)


@cache
def _events() -> msgspec.json.Decoder[AnyEvent]:
    return msgspec.json.Decoder(AnyEvent)


def _decode(line: bytes, folder: Path, decoder: msgspec.json.Decoder[M]) -> M:
    try:
        if line.startswith(b'{"in_file"'):
            line = _from_file(msgspec.json.decode(line, type=Elsewhere).in_file, folder)
        return decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError, OSError) as error:
        raise BadLine(str(error)) from error


def _from_file(name: str, folder: Path) -> bytes:
    if not _SAFE.fullmatch(name) or not name.startswith(PREFIX):
        raise BadLine("a file name that is none")
    path = folder / name
    with path.open("rb") as file:
        content = file.read(LONGEST_MESSAGE + 1)
    with contextlib.suppress(OSError):
        path.unlink()
    return content


def decode_request(line: bytes, folder: Path) -> AnyRequest:
    """A request of Phoenix.

    Raises:
        BadLine: it is none.
    """
    return _decode(line, folder, _requests())


def decode_event(line: bytes, folder: Path) -> AnyEvent:
    """A message of the helper.

    Raises:
        BadLine: it is none.
    """
    return _decode(line, folder, _events())


READ: Final = 64 * 1024
MOST_DESCRIPTORS: Final = 16
CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
CROWDED: Final = 1024 * 1024
"""Unsent bytes above which droppable events are dropped."""
STUFFED: Final = 64 * 1024 * 1024
"""Unsent bytes above which Phoenix is taken for dead."""


class Link:
    """Reads requests and queues messages; its end is the end of the helper."""

    def __init__(self, control: socket.socket, folder: Path) -> None:
        control.setblocking(False)
        self._socket = control
        self._folder = folder
        self._loop = asyncio.get_running_loop()
        self._descriptors: deque[int] = deque()
        self._unsent: deque[bytes] = deque()
        self._size = 0
        self._writing = False
        self._sent = asyncio.Event()
        self._lost = self._loop.create_future()

    async def requests(self) -> AsyncIterator[AnyRequest]:
        """The requests of Phoenix, until it closes the socket or sends something that is none."""
        rest = bytearray()
        while chunk := await self._chunk():
            rest += chunk
            while (end := rest.find(b"\n")) >= 0:
                line = bytes(rest[:end])
                del rest[: end + 1]
                try:
                    request = decode_request(line, self._folder)
                except BadLine as error:
                    sys.stderr.write(f"mcp_host: a line of Phoenix is no request: {error}\n")
                    return  # the two ends disagree about the protocol: nothing after it can be relied on
                yield request
            if len(rest) > LONGEST_LINE:
                return

    def take_descriptors(self, count: int) -> list[int]:
        """The oldest descriptors that came; fewer than `count` if Phoenix sent fewer."""
        return [self._descriptors.popleft() for _ in range(min(count, len(self._descriptors)))]

    def send(self, message: HelperEvent, *, droppable: bool = False) -> None:
        """Queue a message; a droppable one is left out while Phoenix is behind."""
        if self._lost.done() or (droppable and self._size > CROWDED):
            return
        try:
            line = encode(message, self._folder)
        except (BadLine, OSError):
            if droppable:
                return
            raise
        self._unsent.append(line)
        self._size += len(line)
        if self._size > STUFFED:
            self._lose()
        elif not self._writing:
            self._flush()

    async def flush(self) -> None:
        """Wait until all is sent or the socket is gone."""
        if self._unsent and not self._lost.done():
            self._sent.clear()
            await self._sent.wait()

    def close(self) -> None:
        """Close the socket and unclaimed descriptors."""
        self._lose()
        while self._descriptors:
            with contextlib.suppress(OSError):
                os.close(self._descriptors.popleft())
        self._socket.close()

    async def _chunk(self) -> bytes:
        while not self._lost.done():
            try:
                data, descriptors, _, _ = socket.recv_fds(self._socket, READ, MOST_DESCRIPTORS, CLOSE_ON_EXEC)
            except BlockingIOError:
                await self._readable()
                continue
            except OSError:
                return b""
            self._descriptors.extend(descriptors)
            return data
        return b""

    async def _readable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_reader(self._socket, _set, ready)
        try:
            await asyncio.wait({ready, self._lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._loop.remove_reader(self._socket)

    def _flush(self) -> None:
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent[0])
                self._size -= sent
                if sent == len(self._unsent[0]):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = self._unsent[0][sent:]
        except BlockingIOError:
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._socket, self._flush)
            return
        except OSError:
            self._lose()
        self._sent.set()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._socket)

    def _lose(self) -> None:
        if not self._lost.done():
            self._lost.set_result(None)
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._socket)
        self._unsent.clear()
        self._sent.set()
        self._size = 0


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


ROOT: Final = Path(__file__).resolve().parents[2]
BOOT: Final = "import sys; sys.path.append(sys.argv.pop(1)); from tools.mcp_host.__main__ import main; main()"
"""Isolated (`-I`): no module comes from a working directory, and Phoenix's own folder is the last one searched."""


def missing() -> str:
    """A sentence on what to install; empty where the SDK is installed."""
    if find_spec("mcp") is not None:
        return ""
    return "MCP servers need the extra `mcp`: install phoenix-tui[mcp]."


def connecting_command(address: Path, spill: Path) -> tuple[str, ...]:
    """The helper that connects to a Unix socket, as a supervised program inherits no other descriptor."""
    return (sys.executable, "-I", "-c", BOOT, str(ROOT), "--connect", str(address), "--spill", str(spill))


def command(control: int, spill: Path) -> tuple[str, ...]:
    """The helper with the descriptor of its socket, which it must inherit, and its spill folder."""
    return (sys.executable, "-I", "-c", BOOT, str(ROOT), "--socket", str(control), "--spill", str(spill))
