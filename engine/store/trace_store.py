"""`engine.ports.traces.Traces` on SQLite."""

from __future__ import annotations

import time
from typing import Final

from engine.records.traces import SpanContent, Trace, TraceSpan, TraceSummary
from engine.store import traces
from engine.store.connection import Transactions

MOST_LISTED: Final = 200
"""Runs in a list of traces."""


class SqliteTraces:
    """The traces of stored runs, those that run now included."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def of_run(self, run_id: str) -> Trace | None:
        """The tree of a run; None where there is no such run."""
        return await self._transactions.look(lambda connection: traces.read(connection, run_id, time.time()))

    async def of_conversation(self, conversation_id: str, limit: int = MOST_LISTED) -> list[TraceSummary]:
        """The newest runs of a conversation, newest first."""
        return await self._transactions.look(
            lambda connection: traces.listed(connection, conversation_id, time.time(), limit)
        )

    async def run_named(self, reference: str) -> str:
        """The one run whose id is this or begins with it; empty for none or several."""
        return await self._transactions.read(lambda connection: traces.run_named(connection, reference))

    async def content(self, span: TraceSpan) -> SpanContent:
        """Stored input and output of a span."""
        return await self._transactions.read(lambda connection: traces.content(connection, span))
