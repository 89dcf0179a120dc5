"""Results of single requests: bounded in time and size, spilled to files, or a cause of failure in one sentence."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from tools.clean import clean_line
from tools.mcp_host.guard import OF_SERVER
from tools.mcp_host.protocol import MOST_SPILLED, PROGRESS_APART, CallProgress, ErrorKind, Failure


class SpillFull(Exception):
    """The folder holds all it may."""


class SpillFolder:
    """Writes files into a folder that Phoenix made and clears."""

    def __init__(self, path: Path, most: int = MOST_SPILLED) -> None:
        self.path = path
        self._most = most
        self._sizes: dict[str, int] = {}

    def save(self, content: bytes, suffix: str) -> str:
        """Write a file and return its path; files that Phoenix deleted no longer count.

        Raises:
            SpillFull: the sum of the files would exceed the limit.
            OSError: the file cannot be written.
        """
        if sum(self._sizes.values()) + len(content) > self._most:
            self._sizes = {path: size for path, size in self._sizes.items() if Path(path).exists()}
            if sum(self._sizes.values()) + len(content) > self._most:
                raise SpillFull(f"{self.path} already holds {self._most >> 20} MB of results")
        descriptor, path = tempfile.mkstemp(suffix, "result-", self.path)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            with contextlib.suppress(OSError):
                Path(path).unlink()
            raise
        self._sizes[path] = len(content)
        return path


LONGEST_WORDS = 1_000


class AuthNeeded(Exception):
    """The server refuses what Phoenix has for it; the user must sign in."""


class ServerFailed(Exception):
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
        case ServerFailed():
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
        case ServerFailed():
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


T = TypeVar("T")
WATCHED_EVERY = 0.25
"""Seconds between two looks at an open question."""
_abandoned: set[asyncio.Task[Any]] = set()
"""Requests whose reply is sent already and that tell their server about the cancel; the set keeps them alive."""


async def limit_time(
    work: Coroutine[Any, Any, T], *, total: float, idle: float, heard: Callable[[], float], asked: Callable[[], bool]
) -> T:
    """The result of `work`; `heard` is the loop's time of the last sign of life, `asked` True while a person is asked.

    Raises:
        Failed: a limit passed.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    begun = quiet = loop.time()
    try:
        while not task.done():
            now = loop.time()
            if asked():
                await asyncio.wait({task}, timeout=WATCHED_EVERY)
                begun += loop.time() - now
                quiet = loop.time()
                continue
            rest, silence = total - (now - begun), idle - (now - max(quiet, heard()))
            if rest <= 0:
                raise ServerFailed("timeout", f"It took longer than {total:g} s.")
            if silence <= 0:
                raise ServerFailed("idle", f"Neither data nor progress came for {idle:g} s.")
            await asyncio.wait({task}, timeout=min(rest, silence, 1.0))
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            _abandoned.add(task)
            task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # read once, so that the loop does not report it


class ProgressMeter:
    """Progress of one request: at most ten events a second, and the last one of several."""

    def __init__(self, number: int, send: Callable[[CallProgress], None]) -> None:
        self._number, self._send = number, send
        self._loop = asyncio.get_running_loop()
        self._sent = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._newest: CallProgress | None = None
        self.last = self._loop.time()

    def note(self, done: float, total: float | None, text: str) -> None:
        """Note progress of the server."""
        self.last = self._loop.time()
        self._newest = CallProgress(id=self._number, done=done, total=total, text=text)
        wait = self._sent + PROGRESS_APART - self.last
        if wait <= 0:
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(wait, self._flush)

    def close(self) -> None:
        """Send nothing more."""
        self._newest = None
        if self._timer is not None:
            self._timer.cancel()

    def _flush(self) -> None:
        self._timer = None
        if self._newest is not None:
            self._sent = self._loop.time()
            self._send(self._newest)
            self._newest = None
