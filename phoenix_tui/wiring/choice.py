"""Which model a new conversation gets (CONTRACT 5)."""

from __future__ import annotations

from dataclasses import dataclass

from phoenix_tui.cli.setup import Setup
from phoenix_tui.wiring.backend import Backend


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A reference, and what to say of it."""

    reference: str
    notice: str = ""


async def choose_model(backend: Backend, setup: Setup) -> ModelChoice:
    """The chosen model."""
    return ModelChoice(setup.settings.text("model") or "demo/guide")
