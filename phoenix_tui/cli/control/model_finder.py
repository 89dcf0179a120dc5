"""Finds the models that a host names."""

from __future__ import annotations

from typing import Protocol


class ModelFinder(Protocol):
    """Finds models."""

    async def __call__(self, reference: str) -> str:
        """PROVIDER/MODEL of a reference. Raises ProviderError."""
        ...
