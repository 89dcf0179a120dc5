"""Sums of tokens and cost."""

from __future__ import annotations

from msgspec import Struct

from engine.machine.messages import Usage


def total_cost(*costs: float | None) -> float | None:
    """Sum of all costs; unknown if one is."""
    known = [one for one in costs if one is not None]
    return sum(known) if len(known) == len(costs) else None


class Totals(Struct, frozen=True):
    """Usage of a conversation so far; `cost_usd` is None once a price was unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float | None = 0.0

    @classmethod
    def of(cls, used: Usage, cost_usd: float | None) -> Totals:
        """Totals of one model call."""
        return cls(used.input_tokens, used.output_tokens, used.cache_creation_tokens, used.cache_read_tokens, cost_usd)

    @property
    def tokens(self) -> int:
        """Every token read and written, those of a cache too."""
        return self.input_tokens + self.output_tokens + self.cache_creation_tokens + self.cache_read_tokens

    def plus(self, other: Totals) -> Totals:
        """Sum of both."""
        return Totals(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cost_usd=total_cost(self.cost_usd, other.cost_usd),
        )
