"""`engine.ports.AgentStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from engine.machine.messages import TextBlock
from engine.records import AgentRow, ConversationRecord, NewConversation
from engine.store import agents, conversations, inbox
from engine.store.connection import Transactions
from engine.store.ownership import Instance


class SqliteAgents:
    """Sub-agents and inboxes; shares the connections of its store."""

    def __init__(self, transactions: Transactions, instance: Instance) -> None:
        self._transactions = transactions
        self._instance = instance

    async def create_all(self, new: Sequence[NewConversation], at: float) -> Sequence[ConversationRecord]:
        """Create the sub-agents of one call in one transaction, owned by this process."""

        def job(connection: sqlite3.Connection) -> Sequence[ConversationRecord]:
            for one in new:
                conversations.create(connection, one, at)
                self._instance.claim(connection, one.id, at)
            return [conversations.record(connection, one.id, self._instance) for one in new]

        return await self._transactions.write(job)

    async def rows(self, parent_id: str) -> Sequence[AgentRow]:
        """Every sub-agent of a conversation, oldest first."""
        return await self._transactions.read(lambda connection: agents.rows_of(connection, parent_id))

    async def row(self, agent_id: str) -> AgentRow | None:
        """One sub-agent, or None."""
        return await self._transactions.read(lambda connection: agents.row_of(connection, agent_id))

    async def make_background(self, agent_id: str) -> None:
        """From now on its end is told by a completion message."""
        await self._transactions.write(lambda connection: agents.make_background(connection, agent_id))

    async def tell(self, conversation_id: str, text: str, at: float) -> None:
        """Put a message of the user into an inbox: it is read before the next request."""
        await self._transactions.write(
            lambda connection: inbox.deposit(connection, conversation_id, "user", (TextBlock(text),), "user", at)
        )

    async def waiting(self, conversation_id: str) -> int:
        """How many entries wait in an inbox."""
        return await self._transactions.read(lambda connection: inbox.waiting(connection, conversation_id))
