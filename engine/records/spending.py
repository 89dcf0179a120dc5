"""Money spent today and in each folder, as the database knows it: the base of the caps on spending."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Spent(Struct, frozen=True):
    """Cost of model calls, as far as their prices are known."""

    known_usd: float = 0.0
    unpriced: int = 0
    """Number of calls whose price is unknown."""

    def plus(self, other: Spent) -> Spent:
        """Sum of both."""
        return Spent(self.known_usd + other.known_usd, self.unpriced + other.unpriced)


class CallMark(Struct, frozen=True):
    """The newest call that a sum has; rows of calls are only ever added, or removed with their conversation."""

    row: int = 0
    id: str = ""


class Spending(Struct, frozen=True):
    """Sums of calls, or of those after a mark."""

    mark: CallMark
    whole: bool
    """True when it is no addition: the first answer, and where the call of the mark was removed."""
    day: Spent = Spent()
    folders: Mapping[str, Spent] = field(default_factory=dict[str, Spent])
    """Sums by working directory, all time."""
