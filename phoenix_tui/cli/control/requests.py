"""Requests of the host, by subtype: each gives the answer, or one sentence about why there is none."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from phoenix_tui.cli.control.frames import answer_frame, error_frame
from phoenix_tui.cli.control.host import Write
from phoenix_tui.cli.faults import fault_of
from tools.contract import JsonObject, JsonValue

log = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 100
"""Requests of the host that may be answered at a time."""
UNKNOWN: Final = "Phoenix does not know the request {subtype}."
CAPABILITIES: Final = ("interrupt", "set_permission_mode", "set_model", "mcp_status", "get_context_usage")

Handler: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers a request. Raises RequestError."""


class RequestError(Exception):
    """Raised when a request cannot be answered; one sentence for the host."""


class HostRequests:
    """Answers requests beside the run, each by itself and in any order."""

    def __init__(self, write: Write, handlers: Mapping[str, Handler]) -> None:
        self._write = write
        self._handlers = handlers
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def take(self, line: JsonObject) -> None:
        """Begin to answer a `control_request`; one without an id is ignored."""
        request_id, request = line.get("request_id"), line.get("request")
        if not isinstance(request_id, str) or not isinstance(request, dict):
            return
        if len(self._tasks) >= MOST_AT_ONCE:
            self._write(error_frame(request_id, f"{MOST_AT_ONCE} requests are being answered; send fewer at a time."))
            return
        task = asyncio.ensure_future(self._answer(request_id, request))
        self._tasks[request_id] = task
        task.add_done_callback(lambda ended: self._ended(request_id, ended))

    def withdraw(self, line: JsonObject) -> None:
        """Stop answering a request."""
        request_id = line.get("request_id")
        task = self._tasks.get(request_id) if isinstance(request_id, str) else None
        if task is not None:
            task.cancel()

    async def finish(self) -> None:
        """Wait for the answers under way."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=2.0)

    def _ended(self, request_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(request_id) is task:
            del self._tasks[request_id]
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, BrokenPipeError):
            log.error("a request of the host failed", exc_info=error)

    async def _answer(self, request_id: str, request: JsonObject) -> None:
        subtype = request.get("subtype")
        handler = self._handlers.get(subtype) if isinstance(subtype, str) else None
        if handler is None:
            self._write(error_frame(request_id, UNKNOWN.format(subtype=_quoted(subtype))))
            return
        try:
            answer = await handler(request)
        except RequestError as error:
            self._write(error_frame(request_id, str(error)))
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 - an edge: the host reads a sentence, the log has the traceback
            self._write(error_frame(request_id, fault_of(error).sentence))
        else:
            self._write(answer_frame(request_id, answer))


def process_facts() -> JsonObject:
    """Facts of this process for the answer to `initialize`."""
    capabilities: list[JsonValue] = list(CAPABILITIES)
    return {"pid": os.getpid(), "hook_on_failure_supported": True, "capabilities": capabilities, "account": {}}


def text_of(request: JsonObject, name: str) -> str:
    """A text field of a request.

    Raises:
        RequestError: there is none.
    """
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise RequestError(f"The request needs {name}, a text.")
    return value


def _quoted(value: JsonValue) -> str:
    return f"“{value[:60]}”" if isinstance(value, str) else "without a subtype"
