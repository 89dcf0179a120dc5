"""The connection with an editor: bounded lines in and out, the dispatch of methods, and requests to the client."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import re
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias, cast

import msgspec
from acp import schema
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import CLIENT_METHODS
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    CreateFormSessionElicitationRequest,
    ElicitationSchema,
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    ToolCallUpdate,
)
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from phoenix_tui.cli.faults import fault_of
from tools.clean import clean_line

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
                    view = memoryview(data)
                    while view:
                        view = view[os.write(descriptor, view) :]
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


def _settle(written: asyncio.Future[None], error: ConnectionError | None) -> None:
    if written.done():
        return
    if error is not None:
        written.set_exception(error)
        written.exception()  # read once: the sender may have gone
    else:
        written.set_result(None)


INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
METHOD_NOT_FOUND: Final = -32601
NOT_FOUND: Final = -32002
MOST_FAULTS: Final = 3
"""Wrong parameters that an answer names."""

ClientRequest: TypeAlias = "type[BaseModel] | type[Struct]"
Handler: TypeAlias = Callable[[Any], Awaitable[BaseModel | dict[str, Any] | None]]


class MethodRoute(Struct, frozen=True):
    """A method: the type of its parameters, and what handles them."""

    request: ClientRequest
    handle: Handler


class Dispatcher(Struct, frozen=True):
    """The methods of an agent."""

    requests: Mapping[str, MethodRoute]
    notifications: Mapping[str, MethodRoute]

    async def __call__(self, method: str, params: Any, is_notification: bool) -> dict[str, Any]:
        """Handle one message; the answer as JSON. Raises RequestError."""
        route = (self.notifications if is_notification else self.requests).get(method)
        if route is None:
            if is_notification:
                return {}  # unknown ones are ignored (JSON-RPC 2.0, section 4.1)
            raise RequestError(METHOD_NOT_FOUND, f"There is no method {clean_line(method)[:100]}.")
        request = check_params(route.request, {} if params is None else params)
        try:
            answer = await route.handle(request)
        except RequestError:
            raise
        except Exception as error:  # the app edge: the client gets a sentence, the log the traceback
            raise RequestError(INTERNAL, fault_of(error).sentence) from error
        return as_json(answer) if isinstance(answer, BaseModel) else answer or {}


def check_params(request: ClientRequest, params: Any) -> Any:
    """The parameters as their type. Raises RequestError."""
    try:
        if issubclass(request, BaseModel):
            return request.model_validate(params)
        return msgspec.convert(params, request)
    except ValidationError as error:
        raise RequestError(INVALID_PARAMS, f"Invalid params: {_faults(error)}.") from error
    except (msgspec.ValidationError, RecursionError) as error:
        raise RequestError(INVALID_PARAMS, f"Invalid params: {error}.") from error


def invalid(sentence: str) -> RequestError:
    """The error of parameters that cannot be used."""
    return RequestError(INVALID_PARAMS, sentence)


def as_json(model: BaseModel) -> dict[str, Any]:
    """A value of the schema as it is sent."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _faults(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    said = [f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in found[:MOST_FAULTS]]
    return clean_line("; ".join(said))[:500]


class Client:
    """Requests to the client, and what it said that it can do."""

    def __init__(self) -> None:
        self.capabilities = ClientCapabilities()
        self._connection: Connection | None = None

    def connect(self, connection: Connection) -> None:
        """Use a connection from now on."""
        self._connection = connection

    @property
    def elicits(self) -> bool:
        """True where it can show a form."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and elicitation.form is not None

    @property
    def reads_text(self) -> bool:
        """True where it can be asked for the texts of its files."""
        files = self.capabilities.fs
        return files is not None and files.read_text_file is True

    async def read_text(self, session_id: str, path: str) -> str | None:
        """Text of a file as the editor has it, unsaved changes included; None where it gives none."""
        request = schema.ReadTextFileRequest(session_id=session_id, path=path)
        try:
            answer = await self._open.send_request(CLIENT_METHODS["fs_read_text_file"], as_json(request))
            return schema.ReadTextFileResponse.model_validate(answer).content
        except (ConnectionError, RequestError, ValueError):
            return None

    async def update(self, session_id: str, update: BaseModel) -> None:
        """Tell it about a session. Raises ConnectionError."""
        told: Any = update
        params = as_json(SessionNotification(session_id=session_id, update=told))
        await self._open.send_notification(CLIENT_METHODS["session_update"], params)

    async def permit(self, session_id: str, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> str | None:
        """Id of the option that the user chose; None where the question was cancelled.

        Raises:
            ConnectionError, RequestError, ValueError: there is no usable answer.
        """
        request = RequestPermissionRequest(session_id=session_id, tool_call=call, options=list(options))
        answer = await self._open.send_request(CLIENT_METHODS["session_request_permission"], as_json(request))
        outcome = RequestPermissionResponse.model_validate(answer).outcome
        return outcome.option_id if isinstance(outcome, AllowedOutcome) else None

    async def elicit(
        self, session_id: str, call_id: str, message: str, form: ElicitationSchema
    ) -> dict[str, Any] | None:
        """Content of a form; None where it was declined or cancelled. Raises as `permit`."""
        request = CreateFormSessionElicitationRequest(
            session_id=session_id, tool_call_id=call_id, message=message, mode="form", requested_schema=form
        )
        answer = await self._open.send_request(CLIENT_METHODS["elicitation_create"], as_json(request))
        if fields_of(answer).get("action") != "accept":
            return None
        return schema.AcceptElicitationResponse.model_validate(answer).content or {}

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise ConnectionError("There is no connection.")
        return self._connection
