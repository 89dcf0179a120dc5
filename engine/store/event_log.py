"""`engine.ports.event_log.EventLog` on SQLite."""

from __future__ import annotations

from engine.ports.event_log import PAGE
from engine.records.events import EventSnapshot, StoredEvent
from engine.store import event_rows
from engine.store.connection import Transactions


class SqliteEventLog:
    """The event stream of one database."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def after(self, seq: int, conversation_id: str = "", limit: int = PAGE) -> list[StoredEvent]:
        """At most `limit` events behind `seq`, in order; of one conversation, or of all where it is empty."""
        return await self._transactions.read(
            lambda connection: event_rows.after(connection, seq, conversation_id, limit)
        )

    async def snapshot(self, conversation_id: str = "") -> EventSnapshot:
        """The newest number, with the state of the conversation, or of all at work, as of that event."""
        return await self._transactions.read(lambda connection: event_rows.snapshot(connection, conversation_id))

    async def version(self) -> int:
        """A number that changes with each commit, of this process or another."""
        return await self._transactions.version()

    async def remove_older(self, before: float, limit: int) -> int:
        """Remove the oldest events from before a time, at most `limit`; returns how many went."""
        return await self._transactions.write(lambda connection: event_rows.remove_older(connection, before, limit))
