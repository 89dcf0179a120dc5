"""The OpenAI-compatible provider: its lists of models, and one call in the dialect that the server speaks."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Final

from msgspec import structs

from engine.ports import LimitsTold, ModelInfo, ModelRequest, ProviderError, ProviderNotice, StreamItem
from engine.providers import catalogue
from engine.providers.catalogue import bare_name, is_closed, runs_free
from engine.providers.events import (
    WireModel,
    WireModelMeta,
    drain,
    payloads_of,
    read_models,
    read_props_window,
    read_tags,
)
from engine.providers.failures import build_broken, missing_key
from engine.providers.http import Burst, Head, HttpService, set_limits
from engine.providers.openai_compatible.answer_text import CallSpotter
from engine.providers.openai_compatible.dialect import (
    Dialect,
    EffortParameter,
    effort_fields,
    efforts_of,
    is_known_to_reason,
    learn_dialect,
    parameter_of,
)
from engine.providers.openai_compatible.from_wire import OpenAiReplyBuilder
from engine.providers.openai_compatible.json_protocol import StepReader
from engine.providers.openai_compatible.openai_settings import OPENAI_BASE_URL, OpenAiCompatibleSettings
from engine.providers.openai_compatible.to_wire import encode_request, settle
from engine.providers.refusals import RefusedEfforts, RefusedTools, without_effort
from engine.providers.wire import Written, WrittenMessages, find_encoded_size
from tools.clean import clean_line
from tools.comparing import near_names

OLLAMA: Final = "ollama"
"""Provider whose server has its own list of models, too."""
LLAMA_CPP: Final = "llamacpp"
"""Provider whose server runs one model, whatever name a request has."""
ASKED_AHEAD: Final = frozenset({OLLAMA, LLAMA_CPP, "lmstudio", "vllm"})
"""Servers whose windows are a matter of how they were started; those of others are in the catalogue."""
PATIENCE: Final = 10.0
"""Seconds that a list of its own may take."""
SHORT_PATIENCE: Final = 2.0
"""Seconds that a first request waits for the server's list of models."""
_UNKNOWN_MODEL: Final = WireModel("")


class Offers:
    """The newest list of models of one server."""

    def __init__(self, settings: OpenAiCompatibleSettings, http: HttpService) -> None:
        self._settings = settings
        self._http = http
        self._models: dict[str, WireModel] = {}
        self._asked = settings.name not in ASKED_AHEAD or not settings.local or bool(settings.window)
        """True once no query is due before a request."""
        self._asking = asyncio.Lock()

    def of(self, model: str) -> WireModel:
        """Entry of the server for a model; an empty one when the list was not read."""
        told = self._models.get(model)
        if told is None and self._settings.name == LLAMA_CPP and len(self._models) == 1:
            (told,) = self._models.values()
        return told or _UNKNOWN_MODEL

    async def learn(self) -> None:
        """Ask once how large the windows are, where only the server knows; failures are silent."""
        async with self._asking:
            if self._asked:
                return
            self._asked = True
            try:
                async with asyncio.timeout(SHORT_PATIENCE):
                    await self.read()
            except ProviderError as error:
                self._asked = error.kind not in {"network", "server"}  # the server may still be starting
            except TimeoutError:
                return

    async def read(self) -> list[str]:
        """The names of the models on offer.

        Raises:
            ProviderError: the server cannot be asked, or its answer is no list.
        """
        listed = await self._read_list()
        if self._settings.name == LLAMA_CPP:
            listed = [await self._with_true_window(model) for model in listed]
        self._models = {model.id: model for model in listed}
        return [model.id for model in listed]

    async def _read_list(self) -> list[WireModel]:
        try:
            listed = await read_models(self._http, "/models")
        except ProviderError:
            if self._settings.name != OLLAMA:
                raise
            listed = []
        if listed or self._settings.name != OLLAMA:
            return listed
        async with self._own_address() as own:
            return await read_tags(own)

    async def _with_true_window(self, model: WireModel) -> WireModel:
        """Read the real window: an older llama.cpp lists the one of the training."""
        if model.meta is not None and model.meta.n_ctx:
            return model
        with contextlib.suppress(ProviderError):
            async with self._own_address() as own:
                if window := await read_props_window(own):
                    return structs.replace(model, meta=WireModelMeta(n_ctx=window))
        return model

    @asynccontextmanager
    async def _own_address(self) -> AsyncGenerator[HttpService, None]:
        """The server outside its OpenAI-compatible interface."""
        service = self._settings.service
        base_url = service.base_url.partition("?")[0].rstrip("/").removesuffix("/v1")
        own = HttpService(structs.replace(service, base_url=base_url), self._settings.key_headers, PATIENCE)
        try:
            yield own
        finally:
            await own.close()


MOST: Final = 3
_LIKENESS: Final = 0.5
_NO_SUCH_MODEL: Final = re.compile(
    r"does not know this model|model_not_found|invalid model|not a valid model|"
    r"model.{0,200}(not found|not exist|not a valid|is unknown|not available|no access)",
    re.DOTALL | re.IGNORECASE,
)


def names_no_model(error: ProviderError) -> bool:
    """True for a refusal because of the name of the model."""
    return error.kind == "invalid_request" and not error.context_overflow and bool(_NO_SUCH_MODEL.search(error.message))


def nearest_models(model: str, offered: Sequence[str]) -> list[str]:
    """At most three of the names on offer, the most similar first; those of the same model elsewhere count most."""
    name = bare_name(model)
    same = [one for one in offered if one != model and bare_name(one) == name]
    by_bare = {bare_name(one): one for one in reversed(offered) if one != model}
    similar = near_names(name, by_bare, MOST, _LIKENESS)
    return list(dict.fromkeys((*same, *(by_bare[one] for one in similar))))[:MOST]


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
        request = self._efforts.choose_effort(request, efforts_of(self._parameter, request.model))
        while True:
            dialect = self._dialects.get(request.model, self._default)
            started = False
            try:
                async with aclosing(self._ask(self._tools.leave_out_refused(request), dialect)) as items:
                    async for item in items:
                        started = started or not isinstance(item, LimitsTold)
                        yield item
            except ProviderError as error:
                if started:
                    raise
                request, notice = await self._leave_out_refused(request, dialect, error)
                if notice is not None:
                    yield notice
            else:
                return

    async def _leave_out_refused(
        self, request: ModelRequest, dialect: Dialect, error: ProviderError
    ) -> tuple[ModelRequest, ProviderNotice | None]:
        """The request without what was refused, and a sentence for the user.

        Raises:
            ProviderError: nothing can be left out.
        """
        if (better := learn_dialect(dialect, error)) is not None:
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
        if reasoning is None and is_known_to_reason(model):
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

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """None: its server does not count."""
        return None

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
        body = await self._encode_request(request, dialect, settled)
        pictures = sum(find_encoded_size(image) for image in request.images.values())
        builder = OpenAiReplyBuilder(
            self._service,
            request.model,
            settled.tool_ids(request),
            max(0, len(body) - pictures),
            self._reader(request, dialect),
            dialect,
        )
        head = Head()
        async with (
            aclosing(self._http.post_stream("/chat/completions", body, head)) as chunks,
            aclosing(payloads_of(self._service, chunks)) as batches,
        ):
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
            raise build_broken(self._service)
        for item in builder.flush():
            yield item
        if not (self._settings.local and runs_free(self.name, request.model)):
            await catalogue.load(request.model)
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

    async def _encode_request(self, request: ModelRequest, dialect: Dialect, settled: WrittenMessages) -> bytes:
        """The body; images are megabytes to encode, so then a thread does it."""
        given = self._settings
        if not request.max_tokens:
            request = structs.replace(request, max_tokens=given.max_tokens)
        extra = effort_fields(self._parameter, request.model, request.effort) | dict(given.extra_body)
        encode = partial(encode_request, request, dialect, given.temperature, extra=extra, settled=settled)
        return await asyncio.to_thread(encode) if request.images else encode()
