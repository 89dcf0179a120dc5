"""Models: the facts on which the choice depends and the choice itself (CONTRACT 5), those on offer, and offers to a
user without a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.engine import EngineError
from engine.ports import ModelInfo, ProviderError
from engine.providers import catalogue
from engine.providers.local.server import LEAST_FREE, measure
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.setup import Setup
from phoenix_tui.config.credentials import load_credentials, save_key
from phoenix_tui.config.paths import Paths
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.features.service_interfaces import InstallProgress, LocalOffer
from phoenix_tui.models.accepted import AcceptedServers
from phoenix_tui.models.choice import DEFAULT_MODELS, ModelChoice, choose_model, needs_servers
from phoenix_tui.models.fetch import ModelFileError
from phoenix_tui.models.files import ModelFiles
from phoenix_tui.models.known import KNOWN_MODELS
from phoenix_tui.models.offers import PreferredModels, ProviderOffer, ProviderState
from phoenix_tui.models.servers import discover_local_servers
from phoenix_tui.wiring.providers import DEFAULT_OPENAI_MODEL, ProviderRegistry
from phoenix_tui.wiring.start_facts import facts_of

WITHOUT_NETWORK: Final = frozenset({"demo", "local"})
"""Providers whose models are known at once."""
PATIENCE: Final = 10.0
"""Seconds that one provider may take."""
LATE: Final = f"no answer within {PATIENCE:.0f} s"


class ModelBoard:
    """Asks all providers at a time and remembers their last answers."""

    def __init__(self, providers: ProviderRegistry, preferred: PreferredModels) -> None:
        self.preferred = preferred
        self._providers = providers
        self._answers: dict[str, ProviderOffer] = {}

    def has_provider(self, name: str) -> bool:
        """True for a provider that can be used, or could with a key."""
        return name in self._providers.names()

    async def list_known(self) -> Sequence[ProviderOffer]:
        """Every provider with its last answer, else with its kept list."""
        await asyncio.to_thread(self._providers.lists.load)
        return [await self._find_offer(name) for name in self._providers.names()]

    async def ask_all(self, *, refresh: bool = False) -> AsyncGenerator[ProviderOffer]:
        """Each provider with a key once it has answered."""
        tasks = [asyncio.create_task(self._ask(name, refresh=refresh)) for name in self._providers.names()]
        try:
            for done in asyncio.as_completed(tasks):
                yield await done
        finally:
            for task in tasks:
                task.cancel()

    async def facts(self, reference: str) -> ModelInfo | None:
        """Description of the provider's list, else that of the catalogue with the price of the price list."""
        provider = reference.partition("/")[0]
        listed = self._answers.get(provider)
        found = next((one for one in listed.models if one.reference == reference), None) if listed is not None else None
        if found is not None:
            return found
        try:
            described = self._providers.describe(reference)
        except ConfigError:  # its key cannot be read, which is reported when it is asked
            return None
        return await asyncio.to_thread(catalogue.with_list_price, described) if described is not None else None

    async def _find_offer(self, name: str) -> ProviderOffer:
        if name in WITHOUT_NETWORK:
            return await self._ask(name)
        offer = self._providers.find_known_offer(name)
        answer = self._answers.get(name)
        if answer is None or ProviderState.NO_KEY in {offer.state, answer.state}:  # its key may have changed
            return offer
        return answer

    async def _ask(self, name: str, *, refresh: bool = False) -> ProviderOffer:
        try:
            async with asyncio.timeout(PATIENCE):
                offer = await self._providers.offer(name, refresh=refresh)
        except TimeoutError:
            offer = ProviderOffer(name, ProviderState.UNREACHABLE, LATE)
        self._answers[name] = offer
        return offer


class ModelOffers(Struct, frozen=True):
    """Installs a model, keeps a key, finds servers."""

    paths: Paths
    files: ModelFiles
    providers: ProviderRegistry

    async def local_offer(self) -> LocalOffer | None:
        """The model this machine could run; None when it is installed already."""
        model = KNOWN_MODELS[0]
        if model.name in await asyncio.to_thread(self.files.usable):
            return None
        return LocalOffer(
            name=model.title,
            download_bytes=model.size,
            memory_bytes=LEAST_FREE,
            source="huggingface.co or the Python package index, with a checksum",
            refusal=measure().shortage(model.size),
        )

    async def install(self, progress: Callable[[InstallProgress], None]) -> str:
        """Install it and give the model reference.

        Raises:
            EngineError: no space, no source, or the wrong content came.
        """
        try:
            file = await self.files.install(
                KNOWN_MODELS[0].name,
                agreed=True,
                progress=lambda done, total: progress(InstallProgress(done, total, "Downloading")),
            )
        except ModelFileError as error:
            raise EngineError(str(error)) from error
        return file.reference

    async def save_key(self, provider: str, key: str) -> str:
        """Keep a key and give the model reference it opens.

        Raises:
            EngineError: the key cannot be kept.
        """
        path = self.paths.credentials_file
        try:
            await asyncio.to_thread(save_key, path, provider, key.strip())
            self.providers.credentials = load_credentials(path, self.providers.environment)
        except (ConfigError, OSError) as error:
            raise EngineError(f"The key cannot be saved: {error}") from error
        await self.providers.forget(provider)
        defaults = DEFAULT_MODELS | {"openai": DEFAULT_OPENAI_MODEL}
        return f"{provider}/{defaults[provider]}" if provider in defaults else provider

    async def accept_server(self, reference: str) -> None:
        """Remember that a model of a server on this machine was chosen.

        Raises:
            EngineError: it cannot be kept.
        """
        try:
            await asyncio.to_thread(AcceptedServers(self.paths.servers_file).accept, reference)
        except OSError as error:
            raise EngineError(f"The choice of this server cannot be saved: {error.strerror}.") from error

    async def local_servers(self) -> Sequence[ModelInfo]:
        """Models of servers that answer on this machine now."""
        servers = await discover_local_servers()
        return [ModelInfo(server.kind.value, name, local=True) for server in servers for name in server.models]


SERVER_PATIENCE = 5.0
"""Seconds a server named by the user has to list its models before the screen opens."""


async def choose(
    setup: Setup, environment: Mapping[str, str], files: ModelFiles, providers: ProviderRegistry
) -> ModelChoice:
    """The model of a new conversation, as PROVIDER/MODEL.

    Raises:
        ProviderError: a provider was named without a model, and its server names none.
    """
    facts = facts_of(setup, environment)
    if needs_servers(facts):
        embedded = await asyncio.to_thread(files.usable)
        servers, waiting = AcceptedServers(setup.paths.servers_file).split(await discover_local_servers())
        facts = replace(facts, servers=servers, waiting=waiting, embedded=tuple(embedded))
    choice = choose_model(facts)
    return replace(choice, reference=await full_reference(choice.reference, providers))


async def full_reference(reference: str, providers: ProviderRegistry) -> str:
    """`reference` with its model: a bare server name means the first model it offers.

    Raises:
        ProviderError: the server does not answer or offers nothing.
    """
    name, _, model = reference.partition("/")
    if model or name in providers.defaults():
        return providers.full_reference(reference)
    provider, _ = providers.resolve(f"{name}/any")
    offered = await provider.models()
    if not offered:
        raise ProviderError(
            f"{name} offers no model; load one there, or give it as {name}/MODEL.",
            kind="invalid_request",
            retryable=False,
        )
    return offered[0].reference


async def name_model_of_server(name: str, setup: Setup, environment: Mapping[str, str]) -> str:
    """PROVIDER/MODEL of a bare provider name.

    Raises:
        CommandError: the server does not answer in time or offers nothing.
    """
    providers = ProviderRegistry(setup.settings, setup.credentials, environment)
    try:
        async with asyncio.timeout(SERVER_PATIENCE):
            return await full_reference(name, providers)
    except (ProviderError, TimeoutError) as error:
        raise CommandError(
            f"{name} lists no models: {str(error) or 'no answer'}. Give one with --model {name}/MODEL."
        ) from error
    finally:
        await providers.close()
