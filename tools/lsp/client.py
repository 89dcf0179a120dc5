"""The client's side of the protocol with one running server: requests, open documents, their problems."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct, field

from tools.clean import clean_line
from tools.lsp.definitions import LanguageServer
from tools.lsp.frames import FrameChannel, StalledError
from tools.lsp.problems import ServerProblem, problems_of
from tools.lsp.wire import METHOD_NOT_FOUND, answer, initialize_params, path_of

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
        result = _table(await self.request("initialize", initialize_params(self.server, self.root)))
        able = _table(result.get("capabilities"))
        encoding = able.get("positionEncoding")
        self.encoding = str(encoding) if encoding in _POSITION_ENCODINGS else "utf-16"
        self._pulls = self.server.pulls and bool(able.get("diagnosticProvider"))
        self._saves = bool(_table(able.get("textDocumentSync")).get("save"))
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
            self._close_oldest()
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

    def saved(self, document: OpenDocument, *, created: bool) -> None:
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
            document.problems = await self._pulled(document)
        else:
            await self._pushed(document)
        return document.problems

    async def _pulled(self, document: OpenDocument) -> tuple[ServerProblem, ...]:
        for _ in range(MOST_PULLS):
            try:
                report = _table(await self.request(PULL, {"textDocument": {"uri": document.uri}}))
            except RequestError as error:
                if error.code not in AGAIN:
                    raise
                await asyncio.sleep(PULL_PAUSE)
                continue
            if report.get("kind") == "unchanged":
                return document.problems
            return problems_of(report.get("items"), passed_over=self.server.passed_over)
        raise RequestError("it cancelled every question about problems")

    async def _pushed(self, document: OpenDocument) -> None:
        if not await self._answered(document):
            return
        while not self.ended:  # some push what the syntax has first, and the rest with a second list
            document.arrived.clear()
            try:
                async with asyncio.timeout(SETTLE):
                    await document.arrived.wait()
            except TimeoutError:
                return

    async def _answered(self, document: OpenDocument) -> bool:
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

    def _close_oldest(self) -> None:
        if len(self._open) >= MOST_OPEN:
            self.close_document(next(iter(self._open.values())))

    # What comes from the server.

    def _take(self, message: dict[str, object]) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if isinstance(number, int | str):
                self._answer(number, method, message.get("params"))
            elif "id" not in message:
                self._told(method, message.get("params"))
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

    def _told(self, method: str, params: object) -> None:
        match method:
            case "textDocument/publishDiagnostics":
                self._publish(_table(params))
            case "window/logMessage" | "window/showMessage":
                text = _table(params).get("message")
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
    fields = _table(error)
    code, text = fields.get("code"), fields.get("message")
    message = clean_line(text[: 4 * LONGEST_LOG])[:LONGEST_LOG] if isinstance(text, str) else ""
    return RequestError(message or "it refused", code if isinstance(code, int) else 0)


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
