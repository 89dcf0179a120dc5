"""A transport of the SDK over the two descriptors of a server that Phoenix started."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from tools.mcp_host.guard import GuardedReader, GuardedWriter, Streams, Traffic, ValueCount
from tools.mcp_host.limits import LONGEST_SERVER_LINE
from tools.mcp_host.pipes import LinePipe, LineTooLong

_AT_START: Final = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"')
_AT_END: Final = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*\}\s*\Z')
LOOKED_AT = 200
"""Bytes at either end of an unreadable message in which its id is looked for."""


@asynccontextmanager
async def stdio_transport(pipe: LinePipe, traffic: Traffic) -> AsyncGenerator[Streams]:
    """Streams for a client; the pipe is closed at the end, which a server sees as the end of its input."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with to_session, from_server, to_server, from_session, anyio.create_task_group() as group:
        group.start_soon(_read, pipe, to_session, traffic)
        group.start_soon(_write, pipe, from_session, traffic)
        try:
            yield GuardedReader(from_server, traffic), GuardedWriter(to_server, traffic)
        finally:
            pipe.close()
            group.cancel_scope.cancel()


async def _read(
    pipe: LinePipe, to_session: MemoryObjectSendStream[SessionMessage | Exception], traffic: Traffic
) -> None:
    async with to_session:  # closed last, so that the session finds the cause of its end
        try:
            async for line in pipe.lines():
                traffic.note()
                if line.strip():
                    await to_session.send(_message(line))
        except LineTooLong:
            traffic.end(f"it sent a line of more than {LONGEST_SERVER_LINE >> 20} MB")
        except OSError as error:
            traffic.end(f"its output could not be read: {error.strerror}")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the session ended first
        traffic.end("it closed its output")


def _message(line: bytes) -> SessionMessage | Exception:
    """A message, or the error: an unreadable answer becomes an error answer, so that its call does not wait in vain."""
    try:
        ValueCount().add(line)
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError) as error:
        match = _AT_START.match(line[:LOOKED_AT]) or _AT_END.search(line[-LOOKED_AT:])
        if match is None:
            return error
        reason = ErrorData(code=PARSE_ERROR, message=f"an answer that cannot be read: {_first_line(error)}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(match[1]), error=reason))


def _first_line(error: Exception) -> str:
    detail = [line.strip() for line in str(error).splitlines()]
    return next((line for line in detail if "Invalid JSON" in line or "values" in line), detail[0] if detail else "")[
        :200
    ]


async def _write(pipe: LinePipe, from_session: MemoryObjectReceiveStream[SessionMessage], traffic: Traffic) -> None:
    try:
        async with from_session:
            async for item in from_session:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await pipe.write(line.encode("utf-8", "replace") + b"\n")
    except OSError:
        traffic.end("it closed its input")
