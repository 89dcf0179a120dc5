"""Finds the facts on which the choice of a model depends, and makes it (CONTRACT 5)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from engine.ports import ProviderError
from phoenix_tui.cli.exits import CommandError
from phoenix_tui.cli.setup import Setup
from phoenix_tui.models.accepted import AcceptedServers
from phoenix_tui.models.choice import ModelChoice, choose_model, needs_servers
from phoenix_tui.models.files import ModelFiles
from phoenix_tui.models.servers import discover_local_servers
from phoenix_tui.wiring.providers import ProviderRegistry
from phoenix_tui.wiring.start_facts import facts_of

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
