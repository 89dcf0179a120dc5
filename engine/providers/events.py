"""Event streams and lists of models, as every HTTP provider reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from time import monotonic
from typing import Final

import msgspec
from msgspec.structs import replace

from engine.ollama_tags import read_names
from engine.ports import ProviderError
from engine.providers.failures import Service, build_broken, build_refused, silent, unreadable
from engine.providers.http import HttpService, read_refusal
from engine.providers.http_transport import (
    LONGEST_PINGS,
    MEBIBYTE,
    MOST_DOCUMENT,
    MOST_EVENT,
    MOST_MODELS,
    MOST_NAME,
    InvalidResponse,
    OutOfBounds,
)
from engine.providers.wire import fit, readable_json

BOM = b"\xef\xbb\xbf"


class EventParser:
    """Cuts a byte stream into events; the result is the same at every split of the bytes.

    Only the payload is kept: every provider that names events has the name in its JSON. Carriage returns, comments and
    a byte order mark are understood, and a line of any length costs linear time.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        """Pieces of the line that has not ended yet."""
        self._payload: list[bytes] = []
        self._after_return = False
        """The last byte was CR and counted as a line end; an LF right behind it belongs to it."""
        self._first = True
        self._open_line = self._open_event = 0
        """Bytes of the line and of the event that have not ended yet."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads of the events that `chunk` completes. Raises OutOfBounds for one beyond every bound."""
        chunk = self._with_plain_newlines(chunk)
        last = chunk.rfind(b"\n")
        if last < 0:
            if chunk:
                self._line.append(chunk)
                self._hold(line=self._open_line + len(chunk))
            return []
        lines = chunk[:last].split(b"\n")
        if self._line:
            self._line.append(lines[0])
            lines[0] = b"".join(self._line)
            self._line = []
        if last + 1 < len(chunk):
            self._line.append(chunk[last + 1 :])
        found = self._events(lines)
        self._hold(line=len(chunk) - last - 1)
        return found

    def finish(self) -> list[bytes]:
        """The event that was not followed by a blank line when the stream ended, if there is one."""
        return self._events([b"".join(self._line), b""])

    def _hold(self, *, line: int = 0, more: int = 0) -> None:
        self._open_line = line
        self._open_event += more
        if self._open_line + self._open_event > MOST_EVENT:
            raise OutOfBounds(f"an event of more than {MOST_EVENT // MEBIBYTE} MB")

    def _with_plain_newlines(self, chunk: bytes) -> bytes:
        if self._after_return and chunk:
            self._after_return = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _events(self, lines: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        payload = self._payload
        for line in lines:
            if not line:
                self._open_event = 0
                if payload:
                    found.append(payload[0] if len(payload) == 1 else b"\n".join(payload))
                    payload.clear()
            elif line.startswith(b"data:"):
                self._hold(more=len(line) + 1)
                payload.append(line[6:] if line[5:6] == b" " else line[5:])
            elif self._first and line.startswith(BOM + b"data:"):
                payload.append(line.removeprefix(BOM)[5:].removeprefix(b" "))
            self._first = False
        return found


PING_BYTES = 64
_DOCUMENT = (b"{", b"[")
"""First bytes of an answer that is no stream of events."""
DRAIN_SECONDS = 0.2
"""Seconds that the end of the body may lag behind the last event before the connection is closed instead of kept."""


MOST_PRICE: Final = 100_000.0
"""US dollars per million tokens beyond which a statement is none; OpenRouter writes -1 for a varying price."""


class WireModelMeta(msgspec.Struct):
    """Fields that llama.cpp adds to a model."""

    n_ctx: int | None = None
    n_ctx_train: int | None = None


class WireArchitecture(msgspec.Struct):
    """Inputs of a model as llama.cpp and OpenRouter state them."""

    input_modalities: list[str] | None = None


class WirePricing(msgspec.Struct):
    """US dollars per token, as text (OpenRouter)."""

    prompt: str | float | None = None
    completion: str | float | None = None

    @property
    def per_million(self) -> tuple[float | None, float | None]:
        """Dollars per million tokens of input and of output; None for what is no price."""
        return _per_million(self.prompt), _per_million(self.completion)


def _per_million(value: str | float | None) -> float | None:
    try:
        price = float(value) * 1_000_000 if value is not None else -1.0
    except ValueError:
        return None
    return round(price, 6) if 0 <= price <= MOST_PRICE else None


class WireModel(msgspec.Struct):
    """One entry of a list of models, with the window under the name each server gives it."""

    id: str
    context_length: int | None = None
    """OpenRouter."""
    max_model_len: int | None = None
    """vLLM."""
    max_context_length: int | None = None
    """LM Studio."""
    max_input_tokens: int | None = None
    """Anthropic."""
    meta: WireModelMeta | None = None
    architecture: WireArchitecture | None = None
    pricing: WirePricing | None = None
    supported_parameters: list[str] | None = None
    """Names of parameters (OpenRouter)."""

    def takes(self, parameter: str) -> bool | None:
        """True when a parameter is supported; None when the server does not say."""
        return None if self.supported_parameters is None else parameter in self.supported_parameters

    @property
    def vision(self) -> bool | None:
        """True when it takes images; None when the server does not say."""
        takes = self.architecture.input_modalities if self.architecture else None
        return "image" in takes if takes else None

    @property
    def window(self) -> int:
        """Tokens of context; 0 where the server does not say."""
        meta = self.meta or WireModelMeta()
        sizes = (
            self.context_length,
            self.max_model_len,
            self.max_context_length,
            self.max_input_tokens,
            meta.n_ctx,
            meta.n_ctx_train,
        )
        return next((size for size in sizes if size), 0)


class WireModels(msgspec.Struct):
    """The answer of /v1/models."""

    data: list[WireModel] | None = None


async def payloads_of(
    service: Service, chunks: AsyncIterable[bytes], clock: Callable[[], float] = monotonic
) -> AsyncGenerator[list[bytes], None]:
    """The payloads in the `chunks` of a body: of events, or the body itself where it is one document.

    Raises:
        ProviderError: the body is an error, unreadable, or for too long nothing but signs of life.
    """
    reader, heard = _BodyReader(service), clock()
    try:
        async for chunk in chunks:
            if payloads := reader.feed(chunk):
                heard = heard if all(map(_is_ping, payloads)) else clock()
                yield payloads
            if clock() - heard > LONGEST_PINGS:
                raise silent(service, LONGEST_PINGS)
    except InvalidResponse as error:
        raise unreadable(service, str(error), retryable=not isinstance(error, OutOfBounds)) from None
    yield reader.finish()


class _BodyReader:
    """Reads a body as a stream of events, or as one document where it begins like one."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._events = EventParser()
        self._document: bytearray | None = None
        self._first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads that `chunk` completes. Raises InvalidResponse beyond the limits."""
        if self._first and chunk.strip():
            self._first = False
            self._document = bytearray() if chunk.removeprefix(BOM).lstrip().startswith(_DOCUMENT) else None
        if self._document is None:
            return self._events.feed(chunk)
        self._document += chunk
        if len(self._document) > MOST_DOCUMENT:
            raise OutOfBounds("a document larger than any reply")
        return []

    def finish(self) -> list[bytes]:
        """Return the remaining payloads. Raises ProviderError for an error in the place of a reply."""
        if self._document is not None:
            return _documents(self._service, bytes(self._document).removeprefix(BOM))
        return [payload for payload in self._events.finish() if _is_whole(payload)]


def _documents(service: Service, body: bytes) -> list[bytes]:
    """A reply in one piece, from a server that does not stream, or its chunks, one a line.

    Raises:
        ProviderError: it is an error, or damaged: then it counts as a stream that was cut.
    """
    lines = [line for line in body.splitlines() if line.strip()]
    if len(lines) > 1 and all(map(_is_whole, lines)):
        return lines
    if not _is_whole(body):
        raise build_broken(service)
    try:
        told = msgspec.json.decode(body, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        told = _Document()
    if told.choices or told.content or told.type == "message":
        return [body]
    refusal = read_refusal(200, {}, body)
    raise build_refused(service, replace(refusal, error_type=refusal.error_type or "invalid_request_error"))


async def drain(batches: AsyncGenerator[list[bytes], None]) -> None:
    """Read to the end of the body, so that the connection can be used again."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in batches:
                pass
    except (TimeoutError, ProviderError):
        return


async def read_models(http: HttpService, path: str) -> list[WireModel]:
    """The models that a server lists.

    Raises:
        ProviderError: it cannot be asked, or the answer is no list.
    """
    body = await http.get(path)
    try:
        listed = fit(msgspec.json.decode(readable_json(body)), WireModels).data or []
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise unreadable(http.service, str(error)) from None
    return [model for model in listed[:MOST_MODELS] if len(model.id) <= MOST_NAME]


class _Settings(msgspec.Struct):
    n_ctx: int | None = None


class _Props(msgspec.Struct):
    """Properties that llama.cpp reports of itself."""

    default_generation_settings: _Settings | None = None


async def read_props_window(http: HttpService) -> int:
    """The window of the model that llama.cpp runs, from its own address; 0 where it does not say.

    Raises:
        ProviderError: it cannot be asked, or the answer is unreadable.
    """
    body = await http.get("/props")
    try:
        told = fit(msgspec.json.decode(readable_json(body)), _Props).default_generation_settings
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise unreadable(http.service, str(error)) from None
    return max(0, (told.n_ctx if told else None) or 0)


async def read_tags(http: HttpService) -> list[WireModel]:
    """The models that Ollama lists under its own address.

    Raises:
        ProviderError: it cannot be asked, or the answer is no list.
    """
    body = await http.get("/api/tags")
    try:
        return [WireModel(name) for name in read_names(readable_json(body))]
    except ValueError as error:
        raise unreadable(http.service, str(error)) from None


class _Document(msgspec.Struct):
    """Fields that identify a reply: OpenAI's choices, Anthropic's content."""

    choices: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()
    type: str | None = None


def _is_ping(payload: bytes) -> bool:
    """A sign of life without content, as Anthropic sends it; those of others are comments, which give no payload."""
    return len(payload) < PING_BYTES and b'"ping"' in payload


def _is_whole(payload: bytes) -> bool:
    """True when an event without its blank line is complete; half of one means that the stream was cut."""
    if payload == b"[DONE]":
        return True
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
