"""Models as hosts of Claude name them."""

from __future__ import annotations

from typing import Final, Protocol

LINES: Final = {
    "sonnet": "anthropic/claude-sonnet-5-5",
    "opus": "anthropic/claude-opus-5-5",
    "haiku": "anthropic/claude-haiku-5-5",
    "fable": "anthropic/claude-fable-5",
}
"""Newest model of each line of Claude, by the line's name."""


class ModelFinder(Protocol):
    """Finds models."""

    async def __call__(self, reference: str) -> str:
        """PROVIDER/MODEL of a reference. Raises ProviderError."""
        ...


def known_model(reference: str) -> str:
    """A reference as Phoenix writes it: lines of Claude by their newest model, bare Claude models with a provider."""
    if reference in LINES:
        return LINES[reference]
    return f"anthropic/{reference}" if reference.startswith("claude-") and "/" not in reference else reference
