"""Interface of the models on offer for both front ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from engine.ports import ModelInfo
from phoenix_tui.models.offers import ProviderOffer
from phoenix_tui.models.preferred import PreferredModels


class ModelsApi(Protocol):
    """Every provider with its models, and the user's favourites."""

    @property
    def preferred(self) -> PreferredModels:
        """Favourites, and models chosen last."""
        ...

    def has_provider(self, name: str) -> bool:
        """True for a provider that can be used, or could with a key."""
        ...

    async def known(self) -> Sequence[ProviderOffer]:
        """Every provider with what is known of it without a request."""
        ...

    def asked(self, *, refresh: bool = False) -> AsyncGenerator[ProviderOffer]:
        """Each provider with a key once it has answered; `refresh` asks those too whose list is less than a day old."""
        ...

    async def facts(self, reference: str) -> ModelInfo | None:
        """Window, price and abilities of a model as far as they are known; None for an unknown provider."""
        ...
