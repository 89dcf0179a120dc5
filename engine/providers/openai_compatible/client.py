"""The OpenAI-compatible provider: one call, in the dialect that the server turns out to speak."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from msgspec import structs

from engine.ports import LimitsTold, ModelInfo, ModelRequest, ProviderError, ProviderNotice, StreamItem
from engine.providers import catalogue, prices
from engine.providers.events import drain, post_events
from engine.providers.failures import broken, missing_key
from engine.providers.hosting import is_closed, runs_free
from engine.providers.http import Head, HttpService
from engine.providers.openai_compatible.dialect import Dialect, learned
from engine.providers.openai_compatible.from_wire import OpenAiReplyBuilder
from engine.providers.openai_compatible.json_protocol import StepReader
from engine.providers.openai_compatible.nearest_models import names_no_model, nearest_models
from engine.providers.openai_compatible.offers import SHORT_PATIENCE, Offers
from engine.providers.openai_compatible.openai_effort import (
    EffortParameter,
    effort_fields,
    efforts_of,
    known_to_reason,
    parameter_of,
)
from engine.providers.openai_compatible.openai_settings import OPENAI_BASE_URL, OpenAiCompatibleSettings
from engine.providers.openai_compatible.text_calls import CallSpotter
from engine.providers.openai_compatible.to_wire import encode_request, settle
from engine.providers.pace import Burst
from engine.providers.rate_headers import set_limits
from engine.providers.refused_efforts import RefusedEfforts, without_effort
from engine.providers.refused_tools import RefusedTools
from engine.providers.wire import encoded_size
from engine.providers.written import Written, WrittenMessages
from tools.clean import clean_line


class OpenAiCompatibleProvider:
    """Speaks to OpenAI, to gateways and to servers on this machine (SPEC BED-003, BED-006)."""

    def __init__(self, settings: OpenAiCompatibleSettings) -> None:
        self._settings = settings
        self._service = settings.service
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "user-agent": "phoenix",
        }
        headers |= settings.key_headers
        headers |= settings.headers
        self._http = HttpService(self._service, headers, settings.patience)
        is_openai = settings.base_url == OPENAI_BASE_URL
        self._default = structs.replace(settings.dialect, tool_protocol=settings.tool_protocol)
        if is_openai:
            self._default = structs.replace(self._default, limit_field="max_completion_tokens")
        self._dialects: dict[str, Dialect] = {}
        """Dialects by model: one server may hold models with tools and models without."""
        self._efforts = RefusedEfforts()
        self._tools = RefusedTools()
        named = settings.dialect.reasoning_param
        self._parameter = EffortParameter[named.upper()] if named else parameter_of(settings.name, settings.base_url)
        self._offers = Offers(settings, self._http)
        self._written = Written()
        self._callers: set[str] = set()
        """Models whose calls this server parses itself: their text contains no calls."""

    @property
    def name(self) -> str:
        """The part of a model reference before the slash."""
        return self._settings.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Ask once; see `engine.ports.Provider.stream`.

        A refusal that is only about how the question was put is answered by putting it in the server's way.
        """
        if self._settings.key_variable and not self._settings.api_key and not self._settings.local:
            raise missing_key(self._service)
        await self._offers.learn()
        request = self._efforts.allowed(request, efforts_of(self._parameter, request.model))
        while True:
            dialect = self._dialects.get(request.model, self._default)
            started = False
            try:
                async with aclosing(self._ask(self._tools.allowed(request), dialect)) as items:
                    async for item in items:
                        started = started or not isinstance(item, LimitsTold)
                        yield item
            except ProviderError as error:
                if started:
                    raise
                request, notice = await self._changed(request, dialect, error)
                if notice is not None:
                    yield notice
            else:
                return

    async def _changed(
        self, request: ModelRequest, dialect: Dialect, error: ProviderError
    ) -> tuple[ModelRequest, ProviderNotice | None]:
        """The request without what was refused, and a sentence for the user.

        Raises:
            ProviderError: nothing can be left out.
        """
        if (better := learned(dialect, error)) is not None:
            self._dialects[request.model] = better
            return request, None
        if (notice := self._efforts.notice(request, error)) is not None:
            return without_effort(request), notice
        if names_no_model(error):
            raise await self._naming_others(error, request.model) from error
        if (notice := self._tools.notice(request, error)) is None:
            raise error
        return request, notice

    def describe(self, model: str) -> ModelInfo:
        """Describe `model` from the settings, the server and the catalogue, in this order."""
        given, told = self._settings, self._offers.of(model)
        info = catalogue.describe(self.name, model, window=given.window or told.window, local=given.local)
        vision = info.vision if told.vision is None else told.vision
        tools, reasoning = told.takes("tools"), told.takes("reasoning")
        if reasoning is None and known_to_reason(model):
            reasoning = True
        limits = set_limits(given.tokens_per_minute, given.requests_per_minute, counts_cached=True)
        efforts = self._efforts.of(model, efforts_of(self._parameter, model))
        most = given.max_tokens or info.max_output
        price_in, price_out = told.pricing.per_million if told.pricing is not None else (None, None)
        return structs.replace(
            info,
            vision=vision,
            max_output=most,
            limits=limits,
            efforts=efforts,
            tools=info.tools if tools is None else tools,
            reasoning=info.reasoning if reasoning is None else reasoning,
            price_in=price_in,
            price_out=price_out,
        )

    async def models(self) -> list[ModelInfo]:
        """List the models of the server; remembers its statements about each."""
        return [self.describe(name) for name in await self._offers.read()]

    async def warm(self) -> None:
        """Open a connection ahead of the first request, and ask for the windows that only the server knows."""
        await self._http.warm()
        await self._offers.learn()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def _naming_others(self, error: ProviderError, model: str) -> ProviderError:
        """The error of a name that the server does not know, with the nearest names that it does."""
        try:
            async with asyncio.timeout(SHORT_PATIENCE):
                offered = await self._offers.read()
        except (ProviderError, TimeoutError):
            return error
        found = await asyncio.to_thread(nearest_models, model, offered)
        names = ", ".join(clean_line(self._service.clean(f"{self.name}/{one}")) for one in found)
        nearest = f" The nearest of its models: {names}." if found else ""
        return ProviderError(f"{error.message}{nearest}", kind=error.kind, retryable=False, limits=error.limits)

    async def _ask(self, request: ModelRequest, dialect: Dialect) -> AsyncGenerator[StreamItem, None]:
        settled = settle(request, dialect, self._written)
        body = await self._encoded(request, dialect, settled)
        pictures = sum(encoded_size(image) for image in request.images.values())
        builder = OpenAiReplyBuilder(
            self._service,
            request.model,
            settled.tool_ids(request),
            max(0, len(body) - pictures),
            self._reader(request, dialect),
            dialect,
        )
        head = Head()
        async with aclosing(post_events(self._http, "/chat/completions", body, head)) as batches:
            async for batch in batches:
                if head.limits:
                    yield LimitsTold(head.limits)
                    head.limits = ()
                burst = Burst()
                for payload in batch:
                    for item in builder.feed(payload) if payload else ():
                        yield item
                        if burst.is_over():
                            await asyncio.sleep(0)
                if builder.done:
                    await drain(batches)
                    break
        if not builder.finished:
            raise broken(self._service)
        for item in builder.flush():
            yield item
        if not (self._settings.local and runs_free(self.name, request.model)):
            await prices.load(request.model)
        self._learn(request.model, dialect, builder)
        yield builder.reply()

    def _learn(self, model: str, dialect: Dialect, builder: OpenAiReplyBuilder) -> None:
        """Remember the abilities of a server shown by a whole answer."""
        if builder.called:
            self._callers.add(model)
        if builder.signed and dialect.replay_signed is None:
            self._dialects[model] = structs.replace(dialect, replay_signed=True)
        if builder.signed_calls and dialect.reasoning_replay == "none":
            self._dialects[model] = structs.replace(dialect, reasoning_replay="extra_content")

    def _reader(self, request: ModelRequest, dialect: Dialect) -> StepReader | CallSpotter | None:
        """Reader for calls inside the text; None without tools, and when the server parses them."""
        if not request.tools:
            return None
        if dialect.tool_protocol == "json":
            return StepReader()
        is_own = self._settings.base_url == OPENAI_BASE_URL or is_closed(request.model)
        return None if is_own or request.model in self._callers else CallSpotter(request.tools)

    async def _encoded(self, request: ModelRequest, dialect: Dialect, settled: WrittenMessages) -> bytes:
        """The body; images are megabytes to encode, so then a thread does it."""
        given = self._settings
        if not request.max_tokens:
            request = structs.replace(request, max_tokens=given.max_tokens)
        extra = effort_fields(self._parameter, request.model, request.effort) | dict(given.extra_body)
        encode = partial(encode_request, request, dialect, given.temperature, extra=extra, settled=settled)
        return await asyncio.to_thread(encode) if request.images else encode()
