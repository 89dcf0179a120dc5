"""Bounds on what servers send: size, number and depth, repairs of near misses, and a ring of log lines."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    BlobResourceContents,
    ContentBlock,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    Prompt,
    PromptMessage,
    Resource,
    ResourceTemplate,
    TextResourceContents,
    Tool,
)
from pydantic import TypeAdapter, ValidationError

from tools.clean import clean_line
from tools.mcp_host.protocol import (
    COUNTED_FROM,
    LOG_BURST,
    LOG_RING,
    LOGS_A_SECOND,
    LONGEST_DESCRIPTION,
    LONGEST_LOG,
    LONGEST_NAME,
    MOST_CONTAINERS,
    MOST_ITEMS,
    MOST_LEFT_OUT,
    MOST_UNANSWERED,
    MOST_VALUES,
    NOTIFICATION_BURST,
    NOTIFICATIONS_A_SECOND,
    Log,
)

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream

LEFT_OUT: Final = "phoenix/left_out"
"""Key in `_meta` of a list for names and reasons of what was left out."""
OF_SERVER: Final = "phoenix/of_server"
"""Key in the data of an error that a server sent, where the SDK gives its own errors the same code."""
MENDS: Final = 8
"""Wrong fields of one element that are left out, until the element is."""
Json: TypeAlias = dict[str, Any]
_block: Final[TypeAdapter[Any]] = TypeAdapter(ContentBlock)
_contents: Final[TypeAdapter[Any]] = TypeAdapter(TextResourceContents | BlobResourceContents)
_LISTS: Final[Mapping[str, tuple[str, TypeAdapter[Any]]]] = {
    "tools/list": ("tools", TypeAdapter(Tool)),
    "prompts/list": ("prompts", TypeAdapter(Prompt)),
    "resources/list": ("resources", TypeAdapter(Resource)),
    "resources/templates/list": ("resourceTemplates", TypeAdapter(ResourceTemplate)),
}
MENDED: Final = frozenset({*_LISTS, "tools/call", "prompts/get", "resources/read"})
"""Methods whose answers are looked at."""


def mend(method: str, result: Json) -> Json:
    """The answer to a request of this method, as far as it can be read."""
    match method:
        case "tools/call":
            return _mend_call(result)
        case "prompts/get":
            messages = [_mend_message(one) for one in _several(result.get("messages"))]
            return {**result, "messages": messages}
        case "resources/read":
            return {**result, "contents": [_mend_contents(one) for one in _several(result.get("contents"))]}
        case _:
            return _mend_list(*_LISTS[method], result)


def _mend_list(key: str, kind: TypeAdapter[Any], result: Json) -> Json:
    if not isinstance(result.get(key), list):
        return result  # no list at all: the reader says so
    items: list[Any] = []
    left_out: list[tuple[str, str]] = []
    for one in result[key][: 2 * MOST_ITEMS]:
        if isinstance(one, dict) and key == "tools":
            one = _with_schema(cast("Json", one))
        fitting, why = _fit(kind, one)
        if why:
            name = cast("Json", one).get("name") if isinstance(one, dict) else None
            left_out.append(((name if isinstance(name, str) else "?")[:LONGEST_NAME], why))
        else:
            items.append(fitting)
    cursor = result.get("nextCursor")
    mended = {**result, key: items, "nextCursor": cursor if isinstance(cursor, str) else None}
    meta = mended.get("_meta")
    mended["_meta"] = {**(meta if isinstance(meta, dict) else {}), LEFT_OUT: left_out[:MOST_LEFT_OUT]}
    return mended


def _with_schema(tool: Json) -> Json:
    """The tool with an input schema that is an object of properties; a server may have none for one without input."""
    given = tool.get("inputSchema", tool.get("input_schema"))
    schema: Json = dict(cast("Json", given)) if isinstance(given, dict) else {}
    if not isinstance(schema.get("properties", {}), dict):
        del schema["properties"]
    if "type" not in schema and not {"$ref", "enum", "const"} & schema.keys():
        schema = {"type": "object", **schema}
    return {**tool, "inputSchema": schema}


def _fit(kind: TypeAdapter[Any], given: Any) -> tuple[Any, str]:
    """An element without those of its fields that are wrong; with a reason where it cannot be used."""
    element: Any = given
    why = ""
    for _ in range(MENDS):
        try:
            kind.validate_python(element, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = first["loc"][0] if first["loc"] else ""
            why = f"its {place or 'definition'} is wrong: {first['msg']}"
            if not isinstance(element, dict) or place not in element or place in {"name", "uri", "uriTemplate"}:
                return cast("Any", element), why
            element = {key: value for key, value in cast("Json", element).items() if key != place}
        except RecursionError:
            return element, "it is nested too deeply"
        else:
            return element, ""
    return element, why


def _mend_call(result: Json) -> Json:
    if result.get("resultType", "complete") != "complete":
        return result  # a question, in the newer era
    content = [_mend_block(one) for one in _several(result.get("content"))]
    structured = result.get("structuredContent")
    mended: Json = {**result, "content": content, "isError": bool(result.get("isError", False))}
    if not isinstance(mended.get("_meta", {}), dict):
        del mended["_meta"]
    if structured is not None and not isinstance(structured, dict):
        del mended["structuredContent"]
        mended["content"] = [*content, _text(_show(structured))]
    return mended


def _mend_block(block: Any) -> Any:
    """A part of a result; one that cannot be read becomes text with what the server sent."""
    if isinstance(block, str):
        return _text(block)
    if _is_valid(lambda one: _block.validate_python(one, by_name=False), block):
        return block
    fields = _fields(block)
    bare: Any = {key: value for key, value in fields.items() if key not in {"annotations", "_meta"}}
    if fields and _is_valid(lambda one: _block.validate_python(one, by_name=False), bare):
        return bare
    kind = fields.get("type")
    named = f" of the kind {kind[:LONGEST_NAME]!r}" if isinstance(kind, str) else ""
    return _text(f"(a part{named} that Phoenix does not know: {_show(block)})")


def _mend_message(message: Any) -> Any:
    fields = _fields(message) or {"content": message}
    role = fields.get("role")
    mended: Json = {
        "role": role if role in ("user", "assistant") else "user",
        "content": _mend_block(fields.get("content")),
    }
    return message if _is_valid(PromptMessage.model_validate, message) else mended


def _mend_contents(contents: Any) -> Any:
    if _is_valid(lambda one: _contents.validate_python(one, by_name=False), contents):
        return contents
    uri, text = _fields(contents).get("uri"), _fields(contents).get("text")
    return {
        "uri": uri if isinstance(uri, str) else "?",
        "text": text if isinstance(text, str) else f"(contents that cannot be read: {_show(contents)})",
    }


def _several(value: Any) -> list[Any]:
    """A list, or the one element that stands in its place."""
    if value is None:
        return []
    return [value] if not isinstance(value, list) else [*cast("list[object]", value)]


def _fields(value: Any) -> Json:
    """The fields of an object; none of anything else."""
    return {**cast("dict[str, object]", value)} if isinstance(value, dict) else {}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _show(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[:LONGEST_DESCRIPTION]}…"


def _is_valid(check: Callable[[Any], object], value: Any) -> bool:
    try:
        check(value)
    except (ValidationError, RecursionError):
        return False
    return True


PAUSE_EVERY = 100
PAUSE = 0.05
"""After so many dropped messages the helper stops reading for so many seconds, so a flood costs little time."""

UNREAD_LOOKS = 100
"""Pauses until a server that asks and does not read the answers is disconnected."""


class TooManyValues(ValueError):
    """A message whose objects would fill the memory."""


class Bucket:
    """Admits a burst, and then so many a second."""

    def __init__(self, burst: int, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._left, self._at = float(burst), asyncio.get_running_loop().time()

    def admits(self) -> bool:
        """Take one, if there is one."""
        now = asyncio.get_running_loop().time()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class ValueCount:
    """Counts the values of a long message by their marks, before they become objects."""

    def __init__(self) -> None:
        self._size = self._values = self._containers = 0

    def add(self, data: bytes) -> None:
        """Count in a piece of the message.

        Raises:
            TooManyValues: there are more than any honest answer has.
        """
        self._size += len(data)
        containers = data.count(b"[") + data.count(b"{")
        self._containers += containers
        self._values += containers + data.count(b",")
        if self._size >= COUNTED_FROM and (self._values > MOST_VALUES or self._containers > MOST_CONTAINERS):
            raise TooManyValues(f"a message of more than {MOST_VALUES} values")


class Traffic:
    """State of one connection: time of the last message, requests of the server without an answer, its end."""

    def __init__(self, log: Callable[[str, str], None]) -> None:
        self.over = asyncio.Event()
        self.cause = ""
        self.last = asyncio.get_running_loop().time()
        self.log = log
        """Called with a level and a line."""
        self._bucket = Bucket(NOTIFICATION_BURST, NOTIFICATIONS_A_SECOND)
        self._unanswered: set[int | str] = set()
        self._asked: dict[int | str, str] = {}
        """Methods of our own requests whose answers are mended."""
        self._dropped = 0

    def end(self, cause: str) -> None:
        """Note the first cause of an end."""
        if not self.over.is_set():
            self.cause = cause
            self.over.set()

    def note(self) -> None:
        """Note that bytes came."""
        self.last = asyncio.get_running_loop().time()

    async def admits(self, item: SessionMessage | Exception) -> bool:
        """True for a message that the session shall see."""
        self.note()
        if isinstance(item, Exception):
            if self._bucket.admits():
                self.log("error", f"a message that is not MCP: {type(item).__name__}: {str(item)[:300]}")
                return False
            await self._drop()
            return False
        match item.message:
            case JSONRPCRequest(id=number):
                self._unanswered.add(number)
                return await self._answers_read()
            case JSONRPCNotification(method="notifications/cancelled", params=params):
                self._unanswered.discard(_number(params))
                return True
            case JSONRPCNotification() if not self._bucket.admits():
                await self._drop()
                return False
            case JSONRPCResponse(id=number) | JSONRPCError(id=int() | str() as number):
                method = self._asked.pop(number, "")  # pyrefly: ignore[no-matching-overload] - no None gets here
                if isinstance(item.message, JSONRPCResponse):
                    item.message.result = mend(method, item.message.result) if method else item.message.result
                elif item.message.error.code in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
                    item.message.error.data = {OF_SERVER: True}
            case _:
                pass
        return True

    def begin(self, item: SessionMessage) -> None:
        """Note a request of our own before it is sent."""
        if isinstance(item.message, JSONRPCRequest) and item.message.method in MENDED:
            self._asked[item.message.id] = item.message.method

    def note_sent(self, item: SessionMessage) -> None:
        """Note an answer to a request of the server."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
            self._unanswered.discard(item.message.id)

    async def _answers_read(self) -> bool:
        """Wait while too many requests of the server are unanswered; False if it does not read the answers."""
        waited = 0
        while len(self._unanswered) > MOST_UNANSWERED:
            if waited == UNREAD_LOOKS:
                self.end(f"it sent {MOST_UNANSWERED} requests and does not read the answers")
                return False
            waited += 1
            await asyncio.sleep(PAUSE)
        return True

    async def _drop(self) -> None:
        self._dropped += 1
        if self._dropped % PAUSE_EVERY == 1:
            self.log("warning", f"{self._dropped} messages dropped: they come faster than they can be read")
        if self._dropped % PAUSE_EVERY == 0:
            await asyncio.sleep(PAUSE)


def _number(params: dict[str, Any] | None) -> int | str:
    number = (params or {}).get("requestId")
    return number if isinstance(number, int | str) else ""


class GuardedReader:
    """A read stream of the SDK that gives what `traffic` admits."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], traffic: Traffic) -> None:
        self._inner, self._traffic = inner, traffic

    @property
    def last_context(self) -> object:
        """Context variables of the sender, which the SDK hands to handlers."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next admitted message.

        Raises:
            anyio.EndOfStream: the connection ended.
        """
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError):
                self._traffic.end("it closed the connection")
                raise
            if await self._traffic.admits(item):
                return item
            if self._traffic.over.is_set():
                raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class GuardedWriter:
    """A write stream of the SDK that tells `traffic` about answers."""

    def __init__(self, inner: WriteStream[SessionMessage], traffic: Traffic) -> None:
        self._inner, self._traffic = inner, traffic

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""
        self._traffic.begin(item)
        await self._inner.send(item)
        self._traffic.note_sent(item)

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


Streams: TypeAlias = tuple[GuardedReader, GuardedWriter]


class LogRing:
    """Keeps `LOG_RING` lines."""

    def __init__(self, server: str, send: Callable[[Log], None]) -> None:
        self._server, self._send = server, send
        self._lines: deque[str] = deque(maxlen=LOG_RING)
        self._bucket = Bucket(LOG_BURST, LOGS_A_SECOND)

    @property
    def lines(self) -> list[str]:
        """The lines, oldest first."""
        return list(self._lines)

    def add(self, level: str, text: str) -> None:
        """Add a line; in a flood of them Phoenix is not told each."""
        text = clean_line(text[:LONGEST_LOG])
        self._lines.append(f"{level}: {text}")
        if self._bucket.admits():
            self._send(Log(server=self._server, level=level, text=text))
