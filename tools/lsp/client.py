"""One connection to a language server: frames of bounded size, requests, and the problems that it reports."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from tools.clean import clean_line
from tools.lsp.definitions import LanguageServer
from tools.lsp.problems import (
    METHOD_NOT_FOUND,
    ServerProblem,
    answer,
    initialize_params,
    path_of,
    problems_of,
    table_of,
)
from tools.process.output import Readiness

MOST_HEAD: Final = 4_096
"""Bytes of a head; those of all known servers have under 100."""
MOST_BODY: Final = 4 * 1024 * 1024
"""Bytes of a message that is read; decoding so many takes 30 ms."""
MOST_WAITING: Final = 32 * 1024 * 1024
"""Bytes that wait for a server to read them."""
READ_SIZE: Final = 64 * 1024
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length"

_objects = msgspec.json.Decoder(dict[str, object])


class FrameError(Exception):
    """Raised for what is no message; the stream cannot be read any further. The text completes "it sent …"."""


class StalledError(Exception):
    """Raised when a server has stopped reading."""


class FrameChannel:
    """Reads and writes messages; the descriptors belong to the caller.

    Writing never waits: a task of the channel writes what is queued, whole messages in order.
    """

    def __init__(self, reader: int, writer: int) -> None:
        for descriptor in (reader, writer):
            os.set_blocking(descriptor, False)
        self._reader, self._writer = reader, writer
        self._incoming, self._outgoing = Readiness(), Readiness()
        self._received = bytearray()
        self._queued: deque[bytes] = deque()
        self._waiting = 0
        self._writing: asyncio.Task[None] | None = None

    async def read(self) -> dict[str, object] | None:
        """The next message; None at the end of the stream. What is no JSON object is an empty message.

        Raises:
            FrameError: the bytes that came are no frame, so that nothing behind them can be read.
        """
        head = await self._up_to(_END)
        if head is None:
            return None
        body = await self._exactly(length_of(head))
        if body is None:
            return None
        try:
            return _objects.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}

    def send(self, message: object) -> None:
        """Queue a message.

        Raises:
            StalledError: the server has not read what was sent before.
        """
        body = msgspec.json.encode(message)
        if self._waiting + len(body) > MOST_WAITING:
            raise StalledError
        self._queued.append(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._waiting += len(self._queued[-1])
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    def close(self) -> None:
        """End what waits, before the owner closes the descriptors."""
        self._incoming.close()
        self._outgoing.close()
        if self._writing is not None:
            self._writing.cancel()

    async def _write(self) -> None:
        while self._queued and not self._outgoing.closed:
            rest = memoryview(self._queued[0])
            while rest and not self._outgoing.closed:
                try:
                    rest = rest[os.write(self._writer, rest) :]
                except BlockingIOError:
                    await self._outgoing.writable(self._writer)
                except OSError:
                    return  # it has ended, which the reader sees
            self._waiting -= len(self._queued.popleft())

    async def _up_to(self, end: bytes) -> bytes | None:
        while (place := self._received.find(end)) < 0:
            if len(self._received) > MOST_HEAD:
                raise FrameError("a head that does not end")
            if not await self._receive():
                return None
        if place > MOST_HEAD:
            raise FrameError("a head that does not end")
        head = bytes(memoryview(self._received)[:place])
        del self._received[: place + len(end)]
        return head

    async def _exactly(self, length: int) -> bytes | None:
        while len(self._received) < length:
            if not await self._receive():
                return None
        body = bytes(memoryview(self._received)[:length])
        del self._received[:length]
        return body

    async def _receive(self) -> bool:
        """Read more; False at the end."""
        while not self._incoming.closed:
            try:
                chunk = os.read(self._reader, READ_SIZE)
            except BlockingIOError:
                await self._incoming.readable(self._reader)
                continue
            except OSError:
                return False
            self._received += chunk
            await asyncio.sleep(0)  # a server that writes without a pause must not hold the event loop
            return bool(chunk)
        return False


def length_of(head: bytes) -> int:
    """The length that a head gives.

    Raises:
        FrameError: it gives none, two, or one above the limit.
    """
    found = [
        value.strip()
        for name, colon, value in (line.partition(b":") for line in head.split(b"\r\n"))
        if colon and name.strip().lower() == _LENGTH
    ]
    if len(found) != 1 or not found[0].isdigit():
        raise FrameError("a message without a length")
    if len(found[0]) > 9 or int(found[0]) > MOST_BODY:
        raise FrameError("a message that is too large")
    return int(found[0])


SETTLE: Final = 0.2
"""Seconds without further problems after which those of a server that pushes them count as all."""
QUIET: Final = 0.6
"""Seconds after a server has read a text in which it pushes its problems, if they are others than before."""
SMALL: Final = "textDocument/hover"
MOST_OPEN: Final = 16
"""Documents open in one server; the one used least recently is closed."""
LOG_LINES: Final = 50
LONGEST_LOG: Final = 300
PULL: Final = "textDocument/diagnostic"
AGAIN: Final = frozenset({-32801, -32802})
"""Errors of a pull that is to be repeated: the content was modified, the server cancelled."""
MOST_PULLS: Final = 10
PULL_PAUSE: Final = 0.1
ENDED: Final = "it has ended"
_POSITION_ENCODINGS: Final = frozenset({"utf-8", "utf-16", "utf-32"})
CREATED: Final = 1
CHANGED: Final = 2


class RequestError(Exception):
    """Raised for a request that a server refuses, or that has no answer any more."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class OpenDocument(Struct, eq=False):
    """One file that a server was given the text of."""

    path: Path
    uri: str
    text: str
    version: int = 1
    problems: tuple[ServerProblem, ...] = ()
    """Newest problems of the server."""
    pushed: int = 0
    """Version that the pushed problems are about."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with each list of problems that is pushed."""


class LanguageClient:
    """Talks with one server; `listen` reads until the server ends."""

    def __init__(self, channel: FrameChannel, server: LanguageServer, root: Path) -> None:
        self.server, self.root = server, root
        self.encoding = "utf-16"
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.on_push: Callable[[OpenDocument], None] = lambda _: None
        """Takes a document whose pushed problems have changed."""
        self.ended = False
        """True once nothing more comes."""
        self._channel = channel
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[object]] = {}
        self._open: dict[str, OpenDocument] = {}
        self._pulls = False
        self._saves = False

    async def listen(self) -> None:
        """Read messages until the server ends; all requests that wait fail then.

        Raises:
            FrameError: it sent what cannot be read.
        """
        try:
            while (message := await self._channel.read()) is not None:
                self._take(message)
        finally:
            self.ended = True
            for waiting in self._asked.values():
                if not waiting.done():
                    waiting.set_exception(RequestError(ENDED))
            self._asked.clear()
            for document in self._open.values():
                document.arrived.set()

    async def initialize(self) -> None:
        """Agree on what both can do.

        Raises:
            RequestError: the server refuses, or ends.
        """
        result = table_of(await self.request("initialize", initialize_params(self.server, self.root)))
        able = table_of(result.get("capabilities"))
        encoding = able.get("positionEncoding")
        self.encoding = encoding if encoding in _POSITION_ENCODINGS else "utf-16"
        self._pulls = self.server.pulls and bool(able.get("diagnosticProvider"))
        self._saves = bool(table_of(able.get("textDocumentSync")).get("save"))
        self.notify("initialized", {})
        if self.server.settings:
            self.notify("workspace/didChangeConfiguration", {"settings": dict(self.server.settings)})

    async def request(self, method: str, params: object) -> object:
        """Ask, and wait for the answer without a limit. Cancelling tells the server.

        Raises:
            RequestError: the server refuses, or ends.
            StalledError: it does not read.
        """
        if self.ended:
            raise RequestError(ENDED)
        number = next(self._numbers)
        waiting: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._asked[number] = waiting
        try:
            self._channel.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            return await waiting
        except asyncio.CancelledError:
            with suppress(StalledError):
                self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            self._asked.pop(number, None)

    def notify(self, method: str, params: object) -> None:
        """Tell without an answer.

        Raises:
            StalledError: the server does not read.
        """
        self._channel.send({"jsonrpc": "2.0", "method": method, "params": params})

    # Documents.

    def document(self, path: Path) -> OpenDocument | None:
        """The open document of a file."""
        return self._open.get(str(path))

    def set_text(self, path: Path, language: str, text: str) -> OpenDocument:
        """Open a file with this text, or change the text of the open one."""
        known = self._open.pop(str(path), None)
        if known is None:
            if len(self._open) >= MOST_OPEN:
                self.close_document(next(iter(self._open.values())))
            known = OpenDocument(path, path.as_uri(), text)
            opened = {"uri": known.uri, "languageId": language, "version": known.version, "text": text}
            self.notify("textDocument/didOpen", {"textDocument": opened})
        elif known.text != text:
            known.version, known.text = known.version + 1, text
            self.notify(
                "textDocument/didChange",
                {
                    "textDocument": {"uri": known.uri, "version": known.version},
                    "contentChanges": [{"text": text}],
                },
            )
        self._open[str(path)] = known
        return known

    def notify_saved(self, document: OpenDocument, *, created: bool) -> None:
        """Tell that the text of a document is on the disk."""
        change = {"uri": document.uri, "type": CREATED if created else CHANGED}
        self.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
        if self._saves:
            self.notify("textDocument/didSave", {"textDocument": {"uri": document.uri}})

    def close_document(self, document: OpenDocument) -> None:
        """Close a document: the server reads the file from the disk again."""
        if self._open.pop(str(document.path), None) is not None:
            self.notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})

    @property
    def open_documents(self) -> Sequence[OpenDocument]:
        """Open documents, the one used least recently first."""
        return tuple(self._open.values())

    async def problems(self, document: OpenDocument) -> tuple[ServerProblem, ...]:
        """Problems of the document's present text, once the server has them.

        Raises:
            RequestError: the server refuses, or ends.
        """
        if self._pulls:
            document.problems = await self._pull(document)
        else:
            await self._await_push(document)
        return document.problems

    async def _pull(self, document: OpenDocument) -> tuple[ServerProblem, ...]:
        for _ in range(MOST_PULLS):
            try:
                report = table_of(await self.request(PULL, {"textDocument": {"uri": document.uri}}))
            except RequestError as error:
                if error.code not in AGAIN:
                    raise
                await asyncio.sleep(PULL_PAUSE)
                continue
            if report.get("kind") == "unchanged":
                return document.problems
            return problems_of(report.get("items"), passed_over=self.server.passed_over)
        raise RequestError("it cancelled every question about problems")

    async def _await_push(self, document: OpenDocument) -> None:
        if not await self._await_answer(document):
            return
        while not self.ended:  # some push what the syntax has first, and the rest with a second list
            document.arrived.clear()
            try:
                async with asyncio.timeout(SETTLE):
                    await document.arrived.wait()
            except TimeoutError:
                return

    async def _await_answer(self, document: OpenDocument) -> bool:
        """Wait for the problems of the present text; False where the server has read it and pushes nothing: some do
        not repeat what they have pushed before. What comes later is taken by `on_push`.
        """
        document.arrived.clear()
        if document.pushed < document.version:
            reading = asyncio.create_task(self._read_by_server(document))
            pushing = asyncio.create_task(document.arrived.wait())
            try:
                await asyncio.wait({reading, pushing}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({pushing}, timeout=QUIET)
            finally:
                reading.cancel()
                pushing.cancel()
        if self.ended:
            raise RequestError(ENDED)
        return document.pushed >= document.version

    async def _read_by_server(self, document: OpenDocument) -> None:
        """Wait for the answer to a small question, which is behind the text in the stream."""
        with suppress(RequestError, StalledError):
            await self.request(SMALL, {"textDocument": {"uri": document.uri}, "position": {"line": 0, "character": 0}})

    # What comes from the server.

    def _take(self, message: dict[str, object]) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if isinstance(number, int | str):
                self._answer(number, method, message.get("params"))
            elif "id" not in message:
                self._handle_notification(method, message.get("params"))
            return
        if isinstance(number, int) and (waiting := self._asked.get(number)) is not None and not waiting.done():
            if (error := message.get("error")) is not None:
                waiting.set_exception(_refusal(error))
            else:
                waiting.set_result(message.get("result"))

    def _answer(self, number: int | str, method: str, params: object) -> None:
        known, result = answer(method, params, self.server, self.root)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        if known:
            reply["result"] = result
        else:
            reply["error"] = {"code": METHOD_NOT_FOUND, "message": "Phoenix does not offer this."}
        self._channel.send(reply)

    def _handle_notification(self, method: str, params: object) -> None:
        match method:
            case "textDocument/publishDiagnostics":
                self._publish(table_of(params))
            case "window/logMessage" | "window/showMessage":
                text = table_of(params).get("message")
                if isinstance(text, str):
                    self.log.append(clean_line(text[: 4 * LONGEST_LOG])[:LONGEST_LOG])
            case _:
                pass  # progress and the like

    def _publish(self, params: dict[str, object]) -> None:
        document = self._open.get(path_of(params.get("uri")))
        version = params.get("version")
        if document is None or (isinstance(version, int) and version < document.version):
            return
        document.problems = problems_of(params.get("diagnostics"), passed_over=self.server.passed_over)
        document.pushed = document.version
        document.arrived.set()
        self.on_push(document)


def _refusal(error: object) -> RequestError:
    fields = table_of(error)
    code, text = fields.get("code"), fields.get("message")
    message = clean_line(text[: 4 * LONGEST_LOG])[:LONGEST_LOG] if isinstance(text, str) else ""
    return RequestError(message or "it refused", code if isinstance(code, int) else 0)
