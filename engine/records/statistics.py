"""Sums over many conversations: statistics, and spending for the caps."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from engine.records.runs import Totals, total_cost


class StatisticsGroup(StrEnum):
    """Common property of the calls of one row."""

    DAY = "day"
    """Day in the local time zone, as 2026-11-25."""
    MODEL = "model"
    """PROVIDER/MODEL."""
    FOLDER = "folder"
    """Working directory of the conversation."""
    CONVERSATION = "conversation"
    """Id of the user's conversation; its sub-agents' calls count in it."""
    AGENT = "agent"
    """Profile of a sub-agent; calls of other conversations are left out."""
    PURPOSE = "purpose"


class StatisticsQuery(Struct, frozen=True):
    """Request for sums, all of one state of the database."""

    groups: tuple[StatisticsGroup, ...] = ()
    tools: bool = False
    """True to sum tool calls by name too."""
    since: float = 0.0
    """Unix time; calls that began earlier are left out, 0: none are."""


class CallGroup(Struct, frozen=True):
    """The model calls of one day, model or the like, together; those of forks' copied runs are in their source."""

    key: str = ""
    label: str = ""
    """Title of the conversation; empty in other groups."""
    totals: Totals = Totals()
    """Sum of all calls; its cost is None where the price of one is unknown."""
    known_cost_usd: float = 0.0
    """Cost of the calls whose price is known."""
    agents_cost_usd: float | None = 0.0
    """Part of the cost that sub-agents caused; None where one of their prices is unknown."""
    calls: int = 0
    """Number of calls, including those that failed or were stopped."""
    failed: int = 0
    cancelled: int = 0
    retries: int = 0
    """Number of `calls` that repeated a failed one."""
    estimated: int = 0
    """Number of `calls` whose server counted no tokens, or not to the end."""
    unpriced: int = 0
    """Number of `calls` whose price is unknown."""
    conversations: int = 0
    """Number of conversations that made them, each sub-agent counted as one."""
    duration_ms: int = 0

    def plus(self, other: CallGroup) -> CallGroup:
        """Sum of both, under the key of this one; no conversation may be in both."""
        return CallGroup(
            self.key,
            self.label,
            self.totals.plus(other.totals),
            self.known_cost_usd + other.known_cost_usd,
            total_cost(self.agents_cost_usd, other.agents_cost_usd),
            self.calls + other.calls,
            self.failed + other.failed,
            self.cancelled + other.cancelled,
            self.retries + other.retries,
            self.estimated + other.estimated,
            self.unpriced + other.unpriced,
            self.conversations + other.conversations,
            self.duration_ms + other.duration_ms,
        )


class ToolGroup(Struct, frozen=True):
    """The ended calls of one tool; a fork's copied calls count in their source."""

    name: str
    calls: int
    failed: int
    stopped: int
    """Number of `calls` that were cancelled, skipped or interrupted."""
    duration_ms: int
    """Time they ran, without waits for an answer of the user."""
    result_bytes: int
    """Bytes of their results as text, which the model reads as tokens of later requests."""


class Statistics(Struct, frozen=True):
    """Answer to a query; days in their order, everything else by the most tokens or calls first."""

    total: CallGroup = CallGroup()
    groups: Mapping[StatisticsGroup, tuple[CallGroup, ...]] = field(
        default_factory=dict[StatisticsGroup, tuple[CallGroup, ...]]
    )
    tools: tuple[ToolGroup, ...] = ()


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
