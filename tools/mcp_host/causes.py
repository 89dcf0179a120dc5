"""Errors of the SDK and of connections as one sentence each; words of a server in them are cleaned and cut."""

from __future__ import annotations

from typing import cast

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from tools.clean import clean_line
from tools.mcp_host.mending import OF_SERVER
from tools.mcp_host.protocol import ErrorKind, Failure
from tools.mcp_host.spill import SpillFull

LONGEST_WORDS = 1_000


class AuthNeeded(Exception):
    """The server refuses what Phoenix has for it; the user must sign in."""


class Failed(Exception):
    """A request that failed for a reason that is already known."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(kind=kind, message=message)


def words(text: str) -> str:
    """Words of a server as a line."""
    line = clean_line(text[: LONGEST_WORDS * 2]).strip()
    return line if len(line) <= LONGEST_WORDS else f"{line[:LONGEST_WORDS]}…"


def innermost(error: BaseException) -> BaseException:
    """The first real error in groups of them."""
    while inner := _members(error):
        error = inner[0]
    return error


def find(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """An error of this kind in groups and causes."""
    if isinstance(error, kind):
        return error
    inner = [*_members(error), *(one for one in (error.__cause__, error.__context__) if one is not None)]
    return next((found for one in inner if (found := find(one, kind)) is not None), None)


def _members(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return []
    return list(cast("BaseExceptionGroup[BaseException]", error).exceptions)


def failure(error: BaseException, name: str) -> Failure:
    """The answer to a request that ended with `error`."""
    error = innermost(error)
    match error:
        case Failed():
            return error.failure
        case AuthNeeded():
            return Failure(kind="needs_auth", message=f"MCP server '{name}' needs you to sign in.")
        case MCPError(code=code) if code == CONNECTION_CLOSED and not is_of_server(error):
            return Failure(kind="gone", message=f"MCP server '{name}' ended: {words(error.message)}.")
        case MCPError(code=code) if code == REQUEST_TIMEOUT and not is_of_server(error):
            return Failure(kind="timeout", message=f"MCP server '{name}' did not answer in time.")
        case MCPError():
            text = f"MCP server '{name}' answered with an error: {words(error.message)}"
            return Failure(kind="server", message=text, code=error.code)
        case ValidationError():
            return Failure(
                kind="server", message=f"MCP server '{name}' gave an answer that is not MCP: {_first(error)}"
            )
        case SpillFull() | OSError():
            return Failure(kind="internal", message=f"A result of MCP server '{name}' could not be saved: {error}")
        case _:
            return Failure(kind="internal", message=f"MCP server '{name}': {cause(error)}")


def is_of_server(error: MCPError) -> bool:
    """True for an error that the server sent, whose code is also one that the SDK gives to its own."""
    data: object = error.data
    return isinstance(data, dict) and OF_SERVER in cast("dict[str, object]", data)


def cause(error: BaseException) -> str:
    """Reason of the end of a connection, without its subject."""
    error = innermost(error)
    match error:
        case Failed():
            return error.failure.message
        case MCPError():
            return words(error.message)
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return "it cannot be reached in time"
        case httpx2.ConnectError():
            return f"it cannot be reached: {words(str(error))}"
        case httpx2.HTTPStatusError():
            return f"it answered with HTTP status {error.response.status_code}"
        case httpx2.HTTPError() | httpx2.StreamError():
            return words(str(error)) or type(error).__name__
        case OAuthFlowError():
            return f"signing in failed: {words(str(error))}"
        case ValidationError():
            return f"an answer that is not MCP: {_first(error)}"
        case anyio.ClosedResourceError() | anyio.BrokenResourceError() | anyio.EndOfStream():
            return "it closed the connection"
        case _:
            return words(f"{type(error).__name__}: {error}")


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return words(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
