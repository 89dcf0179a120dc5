"""Ratio of real tokens to estimated ones, learned per model from what providers count. Pure except for its memory."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

SMALLEST, LARGEST = 0.5, 3.0
"""Bounds of a ratio: a server that counts otherwise counts something else."""
SHARE: Final = 0.3
"""Weight of the newest reply in the running ratio."""
MOST_MODELS: Final = 200
"""Models that are remembered; the one learned about first is forgotten."""


class Calibration(Struct, eq=False):
    """Ratios by model reference, for all conversations of this process."""

    _ratios: dict[str, float] = field(default_factory=dict[str, float])

    def ratio(self, model: str) -> float:
        """Real tokens for each estimated one; 1.0 before the first reply."""
        return self._ratios.get(model, 1.0)

    def learn(self, model: str, estimated: int, real: int) -> None:
        """Take one request: its estimated tokens, and those that the provider counted; 0 of either teaches nothing."""
        if estimated <= 0 or real <= 0:
            return
        newest = min(max(real / estimated, SMALLEST), LARGEST)
        before = self._ratios.get(model)
        if before is None and len(self._ratios) >= MOST_MODELS:
            del self._ratios[next(iter(self._ratios))]
        self._ratios[model] = newest if before is None else before + SHARE * (newest - before)
