"""A single provider with published catalogue, in place of all configured ones."""

from __future__ import annotations

from dataclasses import dataclass

from engine.machine.messages import Usage
from engine.ports import Provider, ProviderError
from engine.providers import catalogue


@dataclass
class OneProvider:
    """Claude on loopback, at its published price."""

    provider: Provider

    def resolve(self, reference: str) -> tuple[Provider, str]:
        name, _, model = reference.partition("/")
        if name != "anthropic":
            raise ProviderError(f"There is no provider '{name}'.", kind="auth", retryable=False)
        return self.provider, model

    def price(self, reference: str, usage: Usage) -> float | None:
        return catalogue.price("anthropic", reference.partition("/")[2], usage)

    async def close(self) -> None:
        await self.provider.close()
