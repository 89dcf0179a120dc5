"""Requests in both directions: those of the host, by subtype, and those of Phoenix, with the host's answers by id."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeAlias

from phoenix_tui.cli.control.frames import answer_frame, cancel_frame, error_frame, request_frame
from phoenix_tui.cli.faults import fault_of
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id

MOST_OPEN: Final = 1_000
"""Requests that may wait for answers; a further one fails at once."""

WriteFrame: TypeAlias = Callable[[JsonObject], None]
"""Write one frame; may raise BrokenPipeError."""


class HostError(Exception):
    """Raised when the host refused a request, gave no answer in time, or is gone; a sentence for people."""

    is_silence = False
    """True where no answer came in time."""


class HostSilence(HostError):
    """Raised when the host gave no answer in time."""

    is_silence = True


class Asker(Protocol):
    """Answers questions about calls."""

    @property
    def is_gone(self) -> bool:
        """True where it can answer nothing any more."""
        ...

    async def ask(self, request: JsonObject, seconds: float) -> JsonObject:
        """Answer one. Raises HostError."""
        ...


class HostChannel:
    """The other side of the connection."""

    def __init__(self, write: WriteFrame) -> None:
        self._write = write
        self._open: dict[str, asyncio.Future[JsonObject]] = {}
        self.is_gone = False
        """True once stdin has ended: nothing can be answered any more."""

    async def ask(self, request: JsonObject, seconds: float) -> JsonObject:
        """Send a request and wait for its answer; cancelling withdraws it.

        Raises:
            HostError: it was refused, is not answered in `seconds`, or cannot be any more.
        """
        if self.is_gone:
            raise HostError("The host has closed stdin, so it cannot answer.")
        if len(self._open) >= MOST_OPEN:
            raise HostError(f"{MOST_OPEN} requests wait for the host; it answers none of them.")
        request_id = fresh_id()
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._open[request_id] = answer
        try:
            self._write(request_frame(request_id, request))
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError as error:
            raise HostSilence(f"The host gave no answer within {seconds:g} s.") from error
        finally:
            is_answered = answer.done() and not answer.cancelled()
            if self._open.pop(request_id, None) is not None and not is_answered and not self.is_gone:
                self._write(cancel_frame(request_id))

    def take_answer(self, line: JsonObject) -> None:
        """Take a `control_response`; one that answers nothing, or once more, changes nothing."""
        response = line.get("response")
        if not isinstance(response, dict):
            return
        answer = self._open.get(_text(response.get("request_id")))
        if answer is None or answer.done():
            return
        if response.get("subtype") == "success":
            given = response.get("response")
            answer.set_result(given if isinstance(given, dict) else {})
        else:
            answer.set_exception(HostError(_text(response.get("error")) or "The host refused without a reason."))

    def leave(self) -> None:
        """Let every open request fail: stdin has ended."""
        self.is_gone = True
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(HostError("The host has closed stdin, so it cannot answer."))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


log = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 100
"""Requests of the host that may be answered at a time."""
UNKNOWN: Final = "Phoenix does not know the request {subtype}."
CAPABILITIES: Final = ("interrupt", "set_permission_mode", "set_model", "mcp_status", "get_context_usage")

RequestHandler: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers a request. Raises ControlRequestError."""


class ControlRequestError(Exception):
    """Raised when a request cannot be answered; one sentence for the host."""


class HostRequests:
    """Answers requests beside the run, each by itself and in any order."""

    def __init__(self, write: WriteFrame, handlers: Mapping[str, RequestHandler]) -> None:
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
        task.add_done_callback(lambda ended: self._finish(request_id, ended))

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

    def _finish(self, request_id: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(request_id) is task:
            del self._tasks[request_id]
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, BrokenPipeError):
            log.error("a request of the host failed", exc_info=error)

    async def _answer(self, request_id: str, request: JsonObject) -> None:
        subtype = request.get("subtype")
        handler = self._handlers.get(subtype) if isinstance(subtype, str) else None
        if handler is None:
            shown = f"“{subtype[:60]}”" if isinstance(subtype, str) else "without a subtype"
            self._write(error_frame(request_id, UNKNOWN.format(subtype=shown)))
            return
        try:
            answer = await handler(request)
        except ControlRequestError as error:
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
        ControlRequestError: there is none.
    """
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise ControlRequestError(f"The request needs {name}, a text.")
    return value
