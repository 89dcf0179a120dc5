"""Interface of sums over all conversations for front ends."""

from __future__ import annotations

from typing import Protocol

from engine.records.statistics import Statistics, StatisticsQuery


class StatisticsApi(Protocol):
    """Sums of model calls and tool calls (`engine.ports.statistics.StatisticsStore`)."""

    async def read(self, query: StatisticsQuery) -> Statistics:
        """Sums of all conversations, also archived ones and those in the trash. Raises StorageError."""
        ...
