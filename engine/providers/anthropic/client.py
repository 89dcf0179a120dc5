"""The Anthropic provider: one call over whichever transport is chosen; refused thinking is remembered."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Protocol

import msgspec
from msgspec import structs

from engine.machine.messages import ThinkingBlock, ToolUseBlock
from engine.ports import LimitsTold, ModelInfo, ModelReply, ModelRequest, ProviderError, ProviderNotice, StreamItem
from engine.providers import catalogue
from engine.providers.anthropic.anthropic_settings import DEFAULT_BASE_URL, AnthropicSettings
from engine.providers.anthropic.from_wire import AnthropicReplyBuilder
from engine.providers.anthropic.to_wire import (
    count_body,
    efforts_of,
    encode_request,
    refuses_search,
    settle,
    without_force,
)
from engine.providers.catalogue import bare_name, is_closed
from engine.providers.events import WireModel, drain, payloads_of, read_models
from engine.providers.failures import build_broken, missing_key
from engine.providers.http import Head, HttpService, set_limits
from engine.providers.refusals import RefusedEfforts, RefusedTools, without_effort
from engine.providers.wire import Written, tool_ids
from tools.files.own_files import read_regular, write_file

FILE: Final = "refused-thinking"
"""Name of the file in the folder of states."""
MOST: Final = 4_000
"""Signatures that are kept; the newest ones."""
DIGITS: Final = 16


class ForeignThinking:
    """The refused signatures; without a path they are forgotten with the process."""

    def __init__(self, path: Path | None = None) -> None:
        self.signatures: set[str] = set()
        """Refused signatures of the conversations that were asked about in this process."""
        self._path = path
        self._known: dict[str, None] | None = None
        """Digests, oldest first: a signature has kilobytes, and the digest tells nothing about the thinking."""
        self._seen: set[str] = set()

    def recall(self, signatures: Iterable[str]) -> None:
        """Recognize those among the signatures of a request that were refused before, in any process."""
        new = set(signatures) - self._seen
        if new:
            self._seen |= new
            known = self._read()
            self.signatures |= {one for one in new if _digest(one) in known}

    def refuse(self, signatures: Iterable[str]) -> bool:
        """Remember refused signatures; False where all of them are known. A file that cannot be written is no error."""
        new = set(signatures) - self.signatures
        if not new:
            return False
        self.signatures |= new
        self._known = None  # another process may have written meanwhile
        known = self._read() | dict.fromkeys(map(_digest, sorted(new)))
        self._known = dict.fromkeys(list(known)[-MOST:])
        if self._path is not None:
            with suppress(OSError):
                write_file(self._path, "\n".join(self._known) + "\n")
        return True

    def _read(self) -> dict[str, None]:
        if self._known is None:
            content = read_regular(self._path, MOST * (DIGITS + 1)) if self._path is not None else None
            lines = (content or b"").decode("ascii", "replace").split()
            self._known = dict.fromkeys(line for line in lines if len(line) == DIGITS)
        return self._known


def _digest(signature: str) -> str:
    return hashlib.sha256(signature.encode("utf-8", "replace")).hexdigest()[:DIGITS]


API_VERSION = "2026-10-21"
"""The newest; the official SDK of the same month sends it too."""
MOST_TOKENS: Final = 1_000_000_000
"""A count above it is no count."""


class MessagesTransport(Protocol):
    """Carries one request and brings back the payloads of its events, in batches as they arrive."""

    def events(self, body: bytes, head: Head) -> AsyncGenerator[list[bytes], None]:
        """Send and listen, with `head` filled in first. Closing drops the connection; raises ProviderError."""
        ...

    async def count(self, body: bytes) -> int:
        """Tokens of a request, without an answer to it; 0 where it cannot be asked. Raises ProviderError."""
        ...

    async def models(self) -> list[WireModel]:
        """The models on offer."""
        ...

    async def warm(self) -> None:
        """Get ready for the first request; failures are silent."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class AnthropicProvider:
    """Speaks to Claude (SPEC BED-003, BED-006)."""

    def __init__(self, settings: AnthropicSettings) -> None:
        self._settings = settings
        self._service = settings.service
        self._transport = _transport(settings)
        self._efforts = RefusedEfforts()
        self._tools = RefusedTools()
        self._foreign = ForeignThinking(settings.refused_thinking)
        self._written = Written()
        self._callers: set[str] = set()
        """Models whose calls the server parses itself: their text contains no calls."""
        self._windows: dict[str, int] = {}
        """Windows by model, from /v1/models."""
        self._no_search: set[str] = set()
        """Models whose server has refused to search the web."""

    @property
    def name(self) -> str:
        """The part of a model reference before the slash."""
        return self._settings.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Ask once; see `engine.ports.Provider.stream`.

        Thinking is bound to the model that wrote it. A model that refuses the thinking of another one, after the
        user switched, is asked again without it, and never gets to see it again. Nor does one that refuses an effort.
        """
        if self._settings.lacks_credentials:
            raise missing_key(self._service)
        request = self._efforts.choose_effort(request, efforts_of(request.model))
        while True:
            started = False
            try:
                async with aclosing(self._ask(self._tools.leave_out_refused(request))) as items:
                    async for item in items:
                        started = started or not isinstance(item, LimitsTold)
                        yield item
            except ProviderError as error:
                changed = None if started else self._leave_out_refused(request, error)
                if changed is None:
                    raise
                request, notice = changed
                if notice is not None:
                    yield notice
            else:
                return

    def _leave_out_refused(
        self, request: ModelRequest, error: ProviderError
    ) -> tuple[ModelRequest, ProviderNotice | None] | None:
        """The request without what was refused, and a sentence for the user; None where nothing can be left out."""
        if _is_about_thinking(error) and self._foreign.refuse(_signatures(request)):
            return request, None
        if (again := without_force(request, error)) is not None:
            return again, None
        if refuses_search(request, error):
            self._no_search.add(request.model)
        notice = self._efforts.notice(request, error)
        if notice is None and (refused := self._tools.notice(request, error)) is not None:
            return request, refused
        return None if notice is None else (without_effort(request), notice)

    def describe(self, model: str) -> ModelInfo:
        """Describe `model` from the settings, the server and the catalogue, in this order."""
        given = self._settings
        info = catalogue.describe(self.name, model, window=given.window or self._windows.get(model, 0))
        limits = set_limits(given.tokens_per_minute, given.requests_per_minute, counts_cached=False)
        efforts = self._efforts.of(model, efforts_of(model))
        is_claude = is_closed(model) and bare_name(model).startswith("claude-")
        can_ask = self._settings.backend != "bedrock" and not self._settings.lacks_credentials
        return structs.replace(
            info,
            max_output=given.max_tokens or info.max_output,
            limits=limits,
            efforts=efforts,
            searches=is_claude and can_ask and model not in self._no_search,
        )

    async def models(self) -> list[ModelInfo]:
        """List the models of the server; remembers the windows it names."""
        listed = await self._transport.models()
        self._windows.update({model.id: model.window for model in listed if model.window})
        return [self.describe(model.id) for model in listed]

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Tokens of the request; None where the server does not say, or there is no key."""
        if self._settings.lacks_credentials:
            return None
        request = self._efforts.choose_effort(request, efforts_of(request.model))
        budget = self._settings.thinking_budget
        self._foreign.recall(_signatures(request))
        foreign = frozenset(self._foreign.signatures)
        request = self._tools.leave_out_refused(request)
        body = await asyncio.to_thread(count_body, request, budget, foreign=foreign)
        try:
            return await self._transport.count(body) or None
        except ProviderError:
            return None  # gateways and older servers lack it; the estimate stays

    async def warm(self) -> None:
        """Open a connection ahead of the first request."""
        await self._transport.warm()

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.close()

    async def _ask(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self._foreign.recall(_signatures(request))
        foreign = frozenset(self._foreign.signatures)
        settled = settle(request, self._written, foreign)
        if not request.max_tokens:
            request = structs.replace(request, max_tokens=self._settings.max_tokens)
        encode = partial(encode_request, request, self._settings.thinking_budget, foreign=foreign, settled=settled)
        # Images are megabytes to encode, so then a thread does it.
        body = await asyncio.to_thread(encode) if request.images else encode()
        builder, head = AnthropicReplyBuilder(self._service, request.model, settled.tool_ids(request)), Head()
        async with aclosing(self._transport.events(body, head)) as batches:
            async for batch in batches:
                if head.limits:
                    yield LimitsTold(head.limits)
                    head.limits = ()
                for payload in batch:
                    item = builder.feed(payload) if payload else None
                    if item is not None:
                        yield item
                if builder.done:
                    await drain(batches)
                    await catalogue.load(request.model)
                    yield await self._sort_out_reply(request, builder.reply())
                    return
        raise build_broken(self._service)

    async def _sort_out_reply(self, request: ModelRequest, reply: ModelReply) -> ModelReply:
        """The reply as it was meant, where the server is not Claude's own and has read no call of this model yet.

        In a thread: a megabyte of short lines takes seconds to be read.
        """
        if any(isinstance(block, ToolUseBlock) for block in reply.blocks):
            self._callers.add(request.model)
        settings = self._settings
        is_own = settings.backend != "direct" or settings.base_url == DEFAULT_BASE_URL
        if is_own or is_closed(request.model) or request.model in self._callers:
            return reply
        from engine.providers.anthropic.from_wire import sort_out_text  # noqa: PLC0415 - 10 ms that no start needs

        return await asyncio.to_thread(sort_out_text, reply, request.tools, tool_ids(request.messages))


class _Counted(msgspec.Struct):
    """Answer to a request that only counts."""

    input_tokens: Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] = 0


class HttpMessagesTransport:
    """The Messages API over HTTP."""

    def __init__(self, settings: AnthropicSettings) -> None:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "anthropic-version": API_VERSION,
            "user-agent": "phoenix",
        }
        if settings.auth_token:
            headers["authorization"] = f"Bearer {settings.auth_token}"
        elif settings.api_key:
            headers["x-api-key"] = settings.api_key
        headers |= settings.headers
        self._http = HttpService(settings.service, headers, settings.idle_timeout)

    async def events(self, body: bytes, head: Head) -> AsyncGenerator[list[bytes], None]:
        """See `MessagesTransport.events`."""
        async with aclosing(self._http.post_stream("/v1/messages", body, head)) as chunks:
            async for payloads in payloads_of(self._http.service, chunks):
                yield payloads

    async def count(self, body: bytes) -> int:
        """See `MessagesTransport.count`."""
        async with aclosing(self._http.post_stream("/v1/messages/count_tokens", body)) as pieces:
            answer = b"".join([piece async for piece in pieces])
        try:
            return msgspec.json.decode(answer, type=_Counted).input_tokens
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return 0

    async def models(self) -> list[WireModel]:
        """See `MessagesTransport.models`."""
        return await read_models(self._http, "/v1/models?limit=100")

    async def warm(self) -> None:
        """See `MessagesTransport.warm`."""
        await self._http.warm()

    async def close(self) -> None:
        """See `MessagesTransport.close`."""
        await self._http.close()


def _signatures(request: ModelRequest) -> set[str]:
    blocks = (block for message in request.messages for block in message.blocks)
    return {block.signature for block in blocks if isinstance(block, ThinkingBlock) and block.signature}


def _is_about_thinking(error: ProviderError) -> bool:
    said = error.message.lower()
    return error.kind == "invalid_request" and "thinking" in said and ("block" in said or "signature" in said)


def _transport(settings: AnthropicSettings) -> MessagesTransport:
    if settings.uses_sdk:
        from engine.providers.anthropic.sdk import SdkTransport  # noqa: PLC0415 - only where the SDK is chosen

        return SdkTransport(settings)
    return HttpMessagesTransport(settings)
