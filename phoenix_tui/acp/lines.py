"""Lines of the protocol over two descriptors: bounded, and read and written by threads so that no client blocks us."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, cast

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of a message from the client."""
MOST_NESTED: Final = 1_000_000
"""Objects and lists of a message: each of them takes a hundred bytes in memory."""
MOST_UNREAD: Final = 64 * 1024 * 1024
"""Bytes that wait for a client that reads nothing; beyond them it counts as gone."""
HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a character as an escape: with the other half missing it is no text, and could not be stored."""
CHUNK: Final = 1 << 16
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
TOO_LONG: Final = f"The line is longer than {LONGEST_LINE // 1024 // 1024} MB: send less at once."
NO_JSON: Final = "The line is no JSON: send one JSON-RPC message a line."
NO_MESSAGE: Final = "This is no JSON-RPC 2.0 message: an object with a method, or an answer with an id, is expected."

Message = dict[str, Any]


class LineTransport:
    """The transport of a connection (`acp.connection`): whole messages, and an answer to lines that are none."""

    def __init__(self, reading: int, writing: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(8)
        """Lines that may wait to be taken."""
        self._outbox: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._unread = 0
        self._is_lost = False
        threading.Thread(target=self._read, args=(reading,), name="acp reader", daemon=True).start()
        threading.Thread(target=self._write, args=(writing,), name="acp writer", daemon=True).start()

    async def send(self, message: Message) -> None:
        """Write a message and wait until it is written. Raises ConnectionError where the client is gone."""
        data = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        if self._is_lost or self._unread + len(data) > MOST_UNREAD:
            self._lose()
            raise ConnectionError("The client reads nothing.")
        written = self._loop.create_future()
        self._unread += len(data)
        self._outbox.put((data, written))
        try:
            await asyncio.shield(written)
        finally:
            self._unread -= len(data)

    async def receive(self) -> Message | None:
        """The next message; None once the client is gone."""
        while True:
            line = await self._lines.get()
            if line is None:
                return None
            self._room.release()
            if not line.strip():
                continue
            message = read_message(line)
            if isinstance(message, dict):
                return message
            code, sentence = message
            error = {"code": code, "message": sentence}
            with suppress(ConnectionError):
                await self.send({"jsonrpc": "2.0", "id": None, "error": error})

    def end(self) -> None:
        """Take no further message, as if the client had ended its input."""
        self._lines.put_nowait(None)

    async def close(self) -> None:
        """Write no more than what was given so far."""
        self._is_lost = True
        self._outbox.put(None)

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._lines.put_nowait(None)

    def _read(self, descriptor: int) -> None:
        with suppress(RuntimeError):  # the loop has been closed
            for line in _lines_of(descriptor):
                self._room.acquire()
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    def _write(self, descriptor: int) -> None:
        with suppress(RuntimeError):  # as above
            while (item := self._outbox.get()) is not None:
                data, written = item
                try:
                    _write_all(descriptor, data)
                except OSError:
                    self._loop.call_soon_threadsafe(self._lose)
                    self._loop.call_soon_threadsafe(_settle, written, ConnectionError("The client is gone."))
                else:
                    self._loop.call_soon_threadsafe(_settle, written, None)


def fields_of(value: object) -> Message:
    """A JSON object from outside; empty for anything else."""
    return cast("Message", value) if isinstance(value, dict) else {}


def read_message(line: bytes) -> Message | tuple[int, str]:
    """The message of a line, or the code and the sentence of the answer to a line that is none."""
    if len(line) > LONGEST_LINE:
        return PARSE_ERROR, TOO_LONG
    if line.count(b"{") + line.count(b"[") > MOST_NESTED:
        return PARSE_ERROR, f"The message has more than {MOST_NESTED:,} objects and lists: send less at once."
    try:
        value: object = json.loads(line)
        if HALF.search(line):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return PARSE_ERROR, NO_JSON
    message = fields_of(value)
    return message if _is_message(message) else (INVALID_REQUEST, NO_MESSAGE)


def _is_message(message: Message) -> bool:
    number, method = message.get("id"), message.get("method")
    if isinstance(number, bool) or not isinstance(number, str | int | None):
        return False
    if "method" in message:
        return isinstance(method, str)
    return (
        number is not None
        and isinstance(message.get("error", {}), dict)
        and ("result" in message) != ("error" in message)
    )


def _lines_of(descriptor: int) -> Iterator[bytes]:
    """Lines without their end; of one that is too long, a part that is longer than allowed."""
    kept = bytearray()
    while True:
        try:
            data = os.read(descriptor, CHUNK)
        except OSError:
            data = b""
        if not data:
            if kept:
                yield bytes(kept)
            return
        *ended, rest = data.split(b"\n")
        for part in ended:
            _keep(kept, part)
            yield bytes(kept)
            kept.clear()
        _keep(kept, rest)


def _keep(kept: bytearray, part: bytes) -> None:
    kept += part[: max(0, LONGEST_LINE + 1 - len(kept))]


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _settle(written: asyncio.Future[None], error: ConnectionError | None) -> None:
    if written.done():
        return
    if error is not None:
        written.set_exception(error)
        written.exception()  # read once: the sender may have gone
    else:
        written.set_result(None)
