"""The models on offer; implements `phoenix_tui.features.service_interfaces.ModelsApi`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from engine.ports import ModelInfo
from engine.providers import prices
from phoenix_tui.config.settings import ConfigError
from phoenix_tui.models.offers import ProviderOffer, ProviderState
from phoenix_tui.models.preferred import PreferredModels
from phoenix_tui.wiring.providers import ProviderRegistry

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

    async def known(self) -> Sequence[ProviderOffer]:
        """Every provider with its last answer, else with its kept list."""
        await asyncio.to_thread(self._providers.lists.load)
        return [await self._known(name) for name in self._providers.names()]

    async def asked(self, *, refresh: bool = False) -> AsyncGenerator[ProviderOffer]:
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
        return await asyncio.to_thread(prices.with_list_price, described) if described is not None else None

    async def _known(self, name: str) -> ProviderOffer:
        if name in WITHOUT_NETWORK:
            return await self._ask(name)
        offer = self._providers.known_offer(name)
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
