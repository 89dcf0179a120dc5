"""`engine.ports.statistics.StatisticsStore` on SQLite."""

from __future__ import annotations

import sqlite3

from engine.records.spending import CallMark, Spending
from engine.records.statistics import Statistics, StatisticsQuery
from engine.store import spending, statistics
from engine.store.connection import Transactions


class SqliteStatistics:
    """Reads sums; long reads have a connection of their own, so that no other read waits."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def read(self, query: StatisticsQuery) -> Statistics:
        """Sums of all conversations."""
        return await self._transactions.look(lambda connection: statistics.read(connection, query))

    def stamp(self) -> object | None:
        """State of the files of the database, without a query; None where two states may look the same."""
        return self._transactions.file_stamp()

    async def spending(self, mark: CallMark, day: float, *, folders: bool) -> Spending:
        """Cost of the calls after `mark`; of all calls, which takes longer, without one."""

        def job(connection: sqlite3.Connection) -> Spending:
            return spending.read(connection, mark, day, folders=folders)

        return await (self._transactions.read(job) if mark.id else self._transactions.look(job))
