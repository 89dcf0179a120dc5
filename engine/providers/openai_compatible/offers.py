"""Statements of a server about its models: their names, windows and whether they take images."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from msgspec import structs

from engine.ports import ProviderError
from engine.providers.events import WireModel, WireModelMeta, read_models, read_props_window, read_tags
from engine.providers.http import HttpService
from engine.providers.openai_compatible.openai_settings import OpenAiCompatibleSettings

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
_UNKNOWN: Final = WireModel("")


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
        return told or _UNKNOWN

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
        listed = await self._listed()
        if self._settings.name == LLAMA_CPP:
            listed = [await self._with_true_window(model) for model in listed]
        self._models = {model.id: model for model in listed}
        return [model.id for model in listed]

    async def _listed(self) -> list[WireModel]:
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
