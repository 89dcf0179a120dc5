"""Port of sums over all conversations: for screens, and for the caps on spending."""

from __future__ import annotations

from typing import Protocol

from engine.records.statistics import CallMark, Spending, Statistics, StatisticsQuery


class StatisticsStore(Protocol):
    """Sums of model calls and tool calls. Every method may raise StorageError."""

    async def read(self, query: StatisticsQuery) -> Statistics:
        """Sums of all conversations, also archived ones and those in the trash."""
        ...

    def stamp(self) -> object | None:
        """State of everything stored, compared by `==`: another one after each change by any process. Reads nothing.

        None where it is unknown. Never raises.
        """
        ...

    async def spending(self, mark: CallMark, day: float, *, folders: bool) -> Spending:
        """Cost of the calls after `mark`, of today since `day` and by folder; of all calls where it is gone."""
        ...
