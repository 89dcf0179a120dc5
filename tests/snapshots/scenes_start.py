"""The first start: what greets, with and without a model on offer."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.service_interfaces import LocalOffer
from tests.snapshots.booth import SMALL, Booth
from tests.support.fake_engine import FakeOnboarding

MEBIBYTE: Final = 1 << 20
OFFER: Final = LocalOffer("qwen2.5-coder-1.5b", 1_066 * MEBIBYTE, 1_900 * MEBIBYTE, "huggingface.co/Qwen")


async def welcome(place: Booth) -> None:
    """Start without a configuration."""
    async with place.opened(onboarding=FakeOnboarding(OFFER)) as shell:
        await shell.until(lambda: "No model yet" in shell.text)
        await place.take(shell, "welcome")


async def working(place: Booth) -> None:
    """A model is there, nothing was said."""
    async with place.opened(model="anthropic/claude-sonnet-5-5") as shell:
        await place.take(shell, "new", (SMALL,))


SCENES: Final = {"welcome": welcome, "new": working}
