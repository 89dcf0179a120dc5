"""Requests of Phoenix to the host, and the host's answers by id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from phoenix_tui.cli.control.frames import cancel_frame, request_frame
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id

MOST_OPEN: Final = 1_000
"""Requests that may wait for answers; a further one fails at once."""

Write: TypeAlias = Callable[[JsonObject], None]
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


class Host:
    """The other side of the connection."""

    def __init__(self, write: Write) -> None:
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
            if self._open.pop(request_id, None) is not None and not _is_answered(answer) and not self.is_gone:
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


def _is_answered(answer: asyncio.Future[JsonObject]) -> bool:
    return answer.done() and not answer.cancelled()


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
