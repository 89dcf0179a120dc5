"""Models of two providers, and others that a test adds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from engine.ports import ModelInfo
from engine.run_options import LEVELS
from phoenix_tui.models.offers import PreferredModels, ProviderOffer, ProviderState

MODELS = (
    ModelInfo(
        "anthropic", "claude-sonnet-5-5", 200_000, 64_000, vision=True, efforts=LEVELS[2:], reasoning=True, tools=True
    ),
    ModelInfo("demo", "guide", local=True, note="answers about Phoenix"),
)


class FakeModels:
    """Models that are known at once; `later` are the answers of providers that are asked."""

    def __init__(self, models: Sequence[ModelInfo] = MODELS) -> None:
        self.offered = models
        self.closed: Sequence[ProviderOffer] = ()
        self.later: Sequence[ProviderOffer] = ()
        self.refreshed: list[bool] = []
        self.preferred = PreferredModels()

    def has_provider(self, name: str) -> bool:
        closed = (one.name for one in self.closed)
        return name in {"anthropic", "demo", "local", *(one.provider for one in self.offered), *closed}

    async def list_known(self) -> Sequence[ProviderOffer]:
        names = dict.fromkeys(one.provider for one in self.offered)
        by_name = {name: tuple(one for one in self.offered if one.provider == name) for name in names}
        opened = [ProviderOffer(name, ProviderState.READY, "", models) for name, models in by_name.items()]
        return [*opened, *self.closed]

    async def ask_all(self, *, refresh: bool = False) -> AsyncGenerator[ProviderOffer]:
        self.refreshed.append(refresh)
        for offer in self.later:
            yield offer

    async def facts(self, reference: str) -> ModelInfo | None:
        return next((one for one in self.offered if one.reference == reference), None)
