"""Lines of the control protocol: those of a host as values, frames that leave as lines of a bounded size, and requests
in both directions.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, cast

from msgspec import Struct

from phoenix_tui.cli.blocks import encode
from phoenix_tui.cli.faults import fault_of
from tools.contract import JsonObject, JsonValue
from tools.fresh_ids import fresh_id

MOST: Final = 1_000_000
"""Bytes of a frame: the Python SDK ends its session at a line of 1 MiB."""
KEPT: Final = (524_288, 131_072, 32_768, 8_192, 2_048, 256)
"""Characters that each text of a too large frame keeps, tried in this order."""
MOST_ITEMS: Final = 200
"""Members of an object or list in a frame that is too large even with short texts."""
_ALWAYS: Final = ("type", "subtype", "request_id", "uuid", "session_id", "parent_tool_use_id", "is_error")


def request_frame(request_id: str, request: JsonObject) -> JsonObject:
    """A question to the other side."""
    return {"type": "control_request", "request_id": request_id, "request": request}


def cancel_frame(request_id: str) -> JsonObject:
    """Withdrawal of a question."""
    return {"type": "control_cancel_request", "request_id": request_id}


def answer_frame(request_id: str, answer: JsonObject) -> JsonObject:
    """The answer to a request of the host."""
    response: JsonObject = {"subtype": "success", "request_id": request_id, "response": answer}
    return {"type": "control_response", "response": response}


def error_frame(request_id: str, sentence: str) -> JsonObject:
    """The refusal of a request of the host."""
    return {
        "type": "control_response",
        "response": {"subtype": "error", "request_id": request_id, "error": sentence},
    }


def encode_frame(frame: JsonObject) -> str:
    """One line of at most `MOST` bytes: a larger frame has its longest texts shortened, then its lists."""
    text = encode(frame)
    if _fits(text):
        return text
    for kept in KEPT:
        text = encode(_map_texts(frame, partial(_shorten, kept=kept)))
        if _fits(text):
            return text
    shortest = _map_texts(frame, lambda one: _shorten(one, KEPT[-1]), MOST_ITEMS)
    text = encode(shortest)
    return text if _fits(text) else encode(_strip(frame))


def is_too_large(frame: JsonObject) -> bool:
    """True for a frame that would not leave whole."""
    return not _fits(encode(frame))


def _fits(text: str) -> bool:
    return len(text) <= MOST and len(text.encode("utf-8", "replace")) <= MOST


def _shorten(text: str, kept: int) -> str:
    if len(text) <= kept:
        return text
    half = kept // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def _map_texts(value: JsonValue, change: Callable[[str], str], most: int | None = None) -> JsonValue:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_texts(one, change, most) for one in value[:most]]
    if isinstance(value, dict):
        return {change(name): _map_texts(one, change, most) for name, one in list(value.items())[:most]}
    return value


def _strip(frame: JsonObject) -> JsonObject:
    """The bare frame, where not even shortening helps; a message keeps the shape that parsers demand."""
    bare: JsonObject = {name: frame[name] for name in _ALWAYS if name in frame}
    message = frame.get("message")
    if isinstance(message, dict):
        content: list[JsonValue] = [{"type": "text", "text": "[left out: too large for one line]"}]
        kept: JsonObject = {name: message[name] for name in ("id", "role", "model") if name in message}
        kept["content"] = content
        bare["message"] = kept
    return bare


LONGEST: Final = 16 << 20
"""Bytes of one line: a message with some large images."""
PIECE: Final = 1 << 16
"""Bytes of one read: the capacity of a pipe."""
TOO_LONG: Final = f"a line on stdin is longer than {LONGEST >> 20} MiB"


class LineFault(Struct, frozen=True):
    """A line that is no message; the rest of stdin cannot be trusted."""

    reason: str


class EndOfInput(Struct, frozen=True):
    """The host has closed stdin."""


HostLine: TypeAlias = "JsonObject | LineFault | EndOfInput"


def parse_line(line: bytes) -> JsonObject | LineFault | None:
    """One line as a JSON object; None for a blank one."""
    text = line.decode("utf-8", "replace").strip()
    if not text:
        return None
    try:
        value: Any = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return LineFault(f"a line on stdin is no JSON ({reason})")
    return cast("JsonObject", value) if isinstance(value, dict) else LineFault("a line on stdin is no JSON object")


def split_lines(read: Callable[[], bytes]) -> Iterator[bytes | LineFault]:
    """Whole lines of a stream; the last one may have no end. Ends behind a line that is too long."""
    waiting = bytearray()
    while piece := read():
        start = len(waiting)
        waiting += piece
        while (end := waiting.find(b"\n", start)) >= 0:
            if end > LONGEST:
                yield LineFault(TOO_LONG)
                return
            yield bytes(waiting[:end])
            del waiting[: end + 1]
            start = 0
        if len(waiting) > LONGEST:
            yield LineFault(TOO_LONG)
            return
    if waiting:
        yield bytes(waiting)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


MOST_IMAGES: Final = 100
"""Images of one message: as many as the Messages API takes."""
LEFT_OUT: Final = "[left out: {kind}, which Phoenix cannot read here]"


class HostMessage(Struct, frozen=True):
    """One message of the user."""

    uuid: str
    """The host's own id of it, or one that was made here."""
    text: str
    images: tuple[bytes, ...] = ()
    content: JsonValue = None
    """The content as it was sent, to be replayed."""
    is_composed: bool = False
    """True for a text that the host made: `/name` in it calls nothing."""

    @property
    def size(self) -> int:
        """Characters and bytes of it."""
        return len(self.text) + sum(map(len, self.images))


def read_message(line: JsonObject) -> HostMessage | None:
    """The message of a `user` line; None where it has no content."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    given = line.get("uuid")
    is_composed = line.get("client_composed") is True
    uuid = given if isinstance(given, str) and given else fresh_id()
    if isinstance(content, str):
        return HostMessage(uuid, content, content=content, is_composed=is_composed)
    if not isinstance(content, list):
        return None
    texts, images = list[str](), list[bytes]()
    for block in content:
        found = _read_block(block) if isinstance(block, dict) else LEFT_OUT.format(kind="a block that is no object")
        if isinstance(found, bytes) and len(images) < MOST_IMAGES:
            images.append(found)
        elif isinstance(found, str):
            texts.append(found)
    return HostMessage(uuid, "\n\n".join(filter(None, texts)), tuple(images), content, is_composed)


def _read_block(block: JsonObject) -> str | bytes:
    kind, source = block.get("type"), block.get("source")
    if kind == "text":
        return _text(block.get("text"))
    if kind == "image" and isinstance(source, dict) and source.get("type") == "base64":
        try:
            return base64.b64decode(_text(source.get("data")), validate=True)
        except (binascii.Error, ValueError):
            return LEFT_OUT.format(kind="an image that is no base64")
    if kind == "document" and isinstance(source, dict) and source.get("type") == "text":
        title = _text(block.get("title"))
        return f"{title}\n\n{_text(source.get('data'))}" if title else _text(source.get("data"))
    return LEFT_OUT.format(kind=f"a block of type {kind}" if isinstance(kind, str) else "a block without a type")


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


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
