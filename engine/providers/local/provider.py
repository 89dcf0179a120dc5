"""The `local` provider: every usable GGUF of this machine, one loaded at a time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

import msgspec

from engine.machine.messages import Block, StopReason, TextBlock, ToolUseBlock, Usage
from engine.ports import (
    ModelInfo,
    ModelReply,
    ModelRequest,
    PromptRead,
    ProviderError,
    StreamItem,
    TextDelta,
    UsageTold,
)
from engine.providers.events import EventParser
from engine.providers.failures import OVERFLOW_MARKS, Service
from engine.providers.http import LOCAL_IDLE_TIMEOUT, HttpService
from engine.providers.http_transport import InvalidResponse, step_problem
from engine.providers.local.from_wire import CutCall, ModelCallsTool, ReplyPiece, ReplyReader, SpokenReply, read_event
from engine.providers.local.server import CONTEXT_WINDOW, LlamaServer, ProgramHost, ServerAddress, failure
from engine.providers.local.to_wire import MAX_TOKENS, CompactTool, encode_priming, encode_request, select_tools
from engine.providers.wire import encode_json

PROVIDER = "local"
CHAT = "/v1/chat/completions"
NOTE = "very small local model, for trying Phoenix and not for work"
IDLE_SECONDS = 600.0
"""A loaded model takes 2 GB, so it goes after ten minutes of silence; loading it again takes 2 to 13 s."""


class ModelFolder(Protocol):
    """The installed models."""

    def usable(self) -> Mapping[str, Path]:
        """Files that a conversation can use, by name, looked up each time."""
        ...


class LocalProvider:
    """Speaks to GGUF files through a llama server of its own."""

    def __init__(
        self,
        models: ModelFolder,
        host: ProgramHost,
        *,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._models = models
        self._host = host
        self._idle_seconds = idle_seconds
        self._model = ""
        self._server: LlamaServer | None = None
        self._http: tuple[ServerAddress, HttpService] | None = None
        self._primed: tuple[ServerAddress, HttpService] | None = None
        """The connection over which the prompt has been read ahead; it lasts as long as the server."""
        self._busy = 0
        self._idle: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        """One request at a time: the server has one slot, and a change of model must not cut a reply off."""

    @property
    def name(self) -> str:
        """`local`."""
        return PROVIDER

    def describe(self, model: str) -> ModelInfo:
        """An 8,192-token window, no images, and a word of caution."""
        return ModelInfo(
            PROVIDER, model, CONTEXT_WINDOW, MAX_TOKENS, vision=False, local=True, note=NOTE, summarizes=False
        )

    async def models(self) -> list[ModelInfo]:
        """The usable files."""
        return [self.describe(name) for name in await asyncio.to_thread(self._models.usable)]

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """None: its server does not count."""
        return None

    async def warm(self) -> None:
        """Start the server of the model last asked, or of the only one there is, and let it read its prompt."""
        names = list(await asyncio.to_thread(self._models.usable))
        name = self._model or (names[0] if len(names) == 1 else "")
        if not name or self._turn.locked():
            return
        try:
            async with self._turn:
                await self._prime(await self._service(name), name)
        except ProviderError:
            return
        self._watch_idle()

    async def _prime(self, service: HttpService, model: str) -> None:
        if self._primed is self._http:
            return
        self._primed = self._http
        async with aclosing(service.post_stream(CHAT, encode_priming(model))) as answer:
            async for _ in answer:
                pass

    async def close(self) -> None:
        """Stop the server."""
        if self._idle is not None:
            self._idle.cancel()
        await self._stop()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Ask once.

        Raises:
            ProviderError: no such model, no memory, no engine, a full window, or a server that died. Never retryable.
        """
        self._busy += 1
        try:
            async with self._turn, aclosing(self._reply(request)) as items:
                async for item in items:
                    yield item
        except ProviderError as error:
            raise self._final(error) from None
        finally:
            self._busy -= 1
            self._watch_idle()

    async def _reply(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        service = await self._service(request.model)
        self._primed = self._http
        tools = select_tools(request.tools)
        reader = ReplyReader()
        talk: list[str] = []
        finish, usage = "", Usage()
        async with aclosing(_pieces(service, encode_request(request))) as pieces:
            async for piece in pieces:
                finish, usage = piece.finish or finish, piece.usage or usage
                talk.append(piece.text)
                if piece.prompt_percent is not None:
                    yield PromptRead(piece.prompt_percent)
                if piece.usage is not None:
                    yield UsageTold(piece.usage)
                if tools:
                    for item in reader.feed(piece.text):
                        yield item
                elif piece.text:
                    yield TextDelta(piece.text)
        if not finish:
            raise failure("The local model server stopped in the middle of the reply.")
        step = reader.finish() if tools else SpokenReply("".join(talk))
        yield self._whole(step, tools, finish == "length", usage, request.model)

    def _whole(
        self,
        step: SpokenReply | ModelCallsTool | CutCall,
        tools: tuple[CompactTool, ...],
        cut: bool,
        usage: Usage,
        model: str,
    ) -> ModelReply:
        blocks: tuple[Block, ...] = ()
        stop = StopReason.MAX_TOKENS if cut else StopReason.END_TURN
        match step:
            case SpokenReply(text):
                blocks = (TextBlock(text),) if text.strip() else ()
            case ModelCallsTool(name, arguments):
                tool = next((tool for tool in tools if tool.name == name), None)
                if tool is None or not set(tool.parameters) <= set(arguments):
                    raise failure("The local model called a tool that does not exist; rephrase the request.")
                expanded = encode_json(tool.expand(arguments)).decode()
                blocks, stop = (ToolUseBlock(f"call_{uuid.uuid4().hex[:16]}", name, expanded),), StopReason.TOOL_USE
            case CutCall():
                pass
        return ModelReply(blocks, stop, usage, model, truncated_call=isinstance(step, CutCall))

    async def _service(self, model: str) -> HttpService:
        """The HTTP service of the running server for `model`; another model's server is stopped first."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if model != self._model or self._server is None:
            path = (await asyncio.to_thread(self._models.usable)).get(model)
            if path is None:
                raise failure(f"local/{model} is not installed; run `phoenix model install`, or /model for another.")
            await self._stop()
            self._model, self._server = model, LlamaServer(path, self._host)
        address = await self._server.address()
        if self._http is None or self._http[0] != address:
            await self._close_http()
            service = Service(address.url, "", (address.api_key,), local=True)
            headers = {"authorization": f"Bearer {address.api_key}", "content-type": "application/json"}
            self._http = (address, HttpService(service, headers, LOCAL_IDLE_TIMEOUT))
        return self._http[1]

    async def _stop(self) -> None:
        await self._close_http()
        if self._server is not None:
            await self._server.stop()

    async def _close_http(self) -> None:
        if self._http is not None:
            _, service = self._http
            self._http = None
            await service.close()

    def _watch_idle(self) -> None:
        if self._busy == 0 and self._server is not None and self._server.running:
            if self._idle is not None:
                self._idle.cancel()
            self._idle = asyncio.create_task(self._stop_when_idle())

    async def _stop_when_idle(self) -> None:
        await asyncio.sleep(self._idle_seconds)
        self._idle = None
        if not self._turn.locked():
            await self._stop()

    def _final(self, error: ProviderError) -> ProviderError:
        """`error` without a retry; a connection that broke because the server died is called by its name."""
        died = error.kind == "network" and self._server is not None and not self._server.running
        message = "The local model server exited during the request; it may have run out of memory."
        return ProviderError(
            message if died else error.message,
            kind="server" if died else error.kind,
            retryable=False,
            context_overflow=error.context_overflow,
        )


async def _pieces(service: HttpService, body: bytes) -> AsyncGenerator[ReplyPiece, None]:
    """The pieces of one reply.

    Raises:
        ProviderError: the request failed, or the stream is not what this server sends.
    """
    parser, written = EventParser(), 0
    async with aclosing(service.post_stream(CHAT, body)) as chunks:
        async for chunk in chunks:
            for payload in _fed(parser, chunk):
                piece = _piece(payload)
                if piece is None:
                    return
                written += len(piece.text)
                if problem := step_problem(written):
                    raise failure(f"The local model server sent {problem}.")
                yield piece


def _fed(parser: EventParser, chunk: bytes) -> list[bytes]:
    try:
        return parser.feed(chunk)
    except InvalidResponse as error:
        raise failure(f"The local model server sent {error}.") from None


def _piece(payload: bytes) -> ReplyPiece | None:
    try:
        piece = read_event(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise failure("The local model server sent an invalid reply.") from None
    if piece is not None and piece.error:
        full = any(mark in piece.error.lower() for mark in OVERFLOW_MARKS)
        raise ProviderError(
            f"The local model failed: {piece.error[:200]}",
            kind="invalid_request" if full else "server",
            retryable=False,
            context_overflow=full,
        )
    return piece
