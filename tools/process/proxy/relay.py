"""Bytes between a client and the host it reaches: bounded in memory, in idle time and in all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from tools.process.proxy.heads import CHUNKED, BadHead, chunk_size

PIECE = 64 * 1024
IDLE = 300.0
"""Seconds without a byte in either direction."""
LINGER = 10.0
"""Seconds that a client may stay once its host has ended."""
LONGEST = 6 * 3600.0
"""Seconds that one connection may last."""

Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Count = Callable[[int], None]


class Patience:
    """The time a connection has left; each byte renews its idle part."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + LONGEST
        self.idle = IDLE

    def renew(self) -> None:
        """A byte came."""
        self._limit.reschedule(min(self._loop.time() + self.idle, self._end))


async def relay(client: Peer, host: Peer, sent: Count, received: Count, length: int | None = None) -> None:
    """Pass bytes in both directions until both have ended; `length` is that of the one body that the client sends, None
    for a tunnel.

    Raises:
        TimeoutError: nothing came for too long, or it lasted too long.
        BadHead: a chunk of the body is malformed.
        OSError: a connection broke.
    """
    async with asyncio.timeout(IDLE) as limit:
        patience = Patience(limit)

        async def up() -> None:
            if length is None:
                await _pipe(client[0], host[1], sent, patience)
                with contextlib.suppress(OSError, RuntimeError):
                    host[1].write_eof()
            elif length == CHUNKED:
                await _chunks(client[0], host[1], sent, patience)
            else:
                await _exactly(client[0], host[1], length, sent, patience)

        sending = asyncio.create_task(up())
        try:
            await _await_end(sending, asyncio.create_task(_pipe(host[0], client[1], received, patience)))
            with contextlib.suppress(OSError, RuntimeError):
                client[1].write_eof()
            patience.idle = LINGER
            patience.renew()
            if length is None:
                await sending
        finally:
            sending.cancel()
            await asyncio.wait({sending})


async def _await_end(sending: asyncio.Task[None], receiving: asyncio.Task[None]) -> None:
    """Wait for the end of what is received; a failure of what is sent ends both."""
    try:
        await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        if not receiving.done():
            sending.result()
        await receiving
    finally:
        receiving.cancel()
        await asyncio.wait({receiving})


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter, count: Count, patience: Patience) -> None:
    while piece := await source.read(PIECE):
        await _pass(piece, target, count, patience)


async def _exactly(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, left: int, count: Count, patience: Patience
) -> None:
    while left:
        piece = await source.read(min(left, PIECE))
        if not piece:
            raise ConnectionResetError
        left -= len(piece)
        await _pass(piece, target, count, patience)


async def _chunks(source: asyncio.StreamReader, target: asyncio.StreamWriter, count: Count, patience: Patience) -> None:
    """Pass a body in chunks on, each written anew, without extensions and trailers."""
    while True:
        size = chunk_size(await _line(source))
        await _pass(b"%x\r\n" % size, target, count, patience)
        if not size:
            break
        await _exactly(source, target, size, count, patience)
        if await source.readexactly(2) != b"\r\n":
            raise BadHead("a chunk of the body is malformed")
        await _pass(b"\r\n", target, count, patience)
    trailers = 0
    while (line := await _line(source)) != b"\r\n":
        trailers += len(line)
        if trailers > PIECE:
            raise BadHead("the trailers of the body are too long")
    await _pass(b"\r\n", target, count, patience)


async def _line(source: asyncio.StreamReader) -> bytes:
    try:
        return await source.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError from error
    except asyncio.LimitOverrunError as error:
        raise BadHead("a chunk of the body is malformed") from error


async def _pass(piece: bytes, target: asyncio.StreamWriter, count: Count, patience: Patience) -> None:
    count(len(piece))
    target.write(piece)
    await target.drain()
    patience.renew()
