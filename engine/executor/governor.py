"""Slows calls of a model down before its rate limit does (SPEC UNI-18)."""

from __future__ import annotations

from msgspec import Struct, field

LOWEST, HIGHEST = 1.0, 3.0
EASE, TIGHTEN = 0.9, 1.5
DELAY_PER_STEP = 2.0
"""Seconds of delay per unit of the multiplier above 1.0."""


class Governor(Struct, eq=False):
    """One multiplier per model: 1.0 means no delay, 3.0 four seconds before every call."""

    _multipliers: dict[str, float] = field(default_factory=dict[str, float])

    def multiplier(self, model: str) -> float:
        """The present one, from 1.0 to 3.0."""
        return self._multipliers.get(model, LOWEST)

    def delay(self, model: str) -> float:
        """Seconds to wait before the next call."""
        return (self.multiplier(model) - LOWEST) * DELAY_PER_STEP

    def succeeded(self, model: str) -> None:
        """A call went through: ease off."""
        self._multipliers[model] = max(LOWEST, self.multiplier(model) * EASE)

    def throttled(self, model: str) -> None:
        """The provider said too many requests: tighten."""
        self._multipliers[model] = min(HIGHEST, self.multiplier(model) * TIGHTEN)
