"""A stdio server in the test itself that may send anything: bytes, floods, silence."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

Behaviour: TypeAlias = Callable[["RawServer", Any], Awaitable[None]]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture, as Base64."""
CAPABILITIES = {"tools": {"listChanged": True}, "logging": {}}


def tool(name: str, **more: Any) -> dict[str, Any]:
    """Definition of a tool."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


class RawServer:
    """Answers the handshake and lists; calls of tools are `behaviours` by name, with the id of the request."""

    def __init__(self, behaviours: dict[str, Behaviour], tools: list[dict[str, Any]] | None = None) -> None:
        self.behaviours = behaviours
        self.tools = [tool(name) for name in behaviours] if tools is None else tools
        self.received: list[dict[str, Any]] = []
        self.initialized: dict[str, Any] = {
            "protocolVersion": "2025-11-25",
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "raw", "version": "1"},
        }
        output, self._output = os.pipe()
        self._input, given = os.pipe()
        self.pipes = output, given
        self._writer: asyncio.StreamWriter

    async def send_bytes(self, data: bytes) -> None:
        """Write anything."""
        self._writer.write(data)
        await self._writer.drain()

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message."""
        await self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def result(self, number: Any, result: dict[str, Any]) -> None:
        """Answer a request."""
        await self.send({"id": number, "result": result})

    async def text(self, number: Any, text: str) -> None:
        """Answer a call with a text."""
        await self.result(number, {"content": [{"type": "text", "text": text}]})

    def methods(self) -> list[str]:
        """Methods of all messages so far."""
        return [message.get("method", "") for message in self.received]

    async def serve(self) -> None:
        """Read and answer until the input ends."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 24)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(self._input, "rb"))
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(), os.fdopen(self._output, "wb")
        )
        self._writer = asyncio.StreamWriter(transport, protocol, None, loop)
        tasks: set[asyncio.Task[None]] = set()
        while line := await reader.readline():
            self.received.append(json.loads(line))
            task = asyncio.ensure_future(self._answer(self.received[-1]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        for task in tasks:
            task.cancel()
        transport.abort()

    async def _answer(self, message: dict[str, Any]) -> None:
        number, params = message.get("id"), message.get("params") or {}
        with contextlib.suppress(OSError):
            match message.get("method"):
                case "initialize":
                    await self.result(number, self.initialized)
                case "tools/list":
                    await self.result(number, {"tools": self.tools})
                case "tools/call":
                    await self.behaviours[params["name"]](self, number)
                case str() if number is not None:
                    await self.send({"id": number, "error": {"code": -32601, "message": "unknown"}})
                case _:
                    pass


@asynccontextmanager
async def raw_server(server: RawServer) -> AsyncIterator[RawServer]:
    """The server while it serves; it ends when the helper closes its input."""
    serving = asyncio.ensure_future(server.serve())
    try:
        yield server
    finally:
        serving.cancel()
        await asyncio.wait({serving})
