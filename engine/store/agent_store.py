"""`engine.ports.AgentStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from engine.machine.messages import TextBlock
from engine.records import AgentRow, NewConversation, StoredConversation
from engine.store import agent_ends, agent_rows, conversations, inbox
from engine.store.connection import Transactions
from engine.store.ownership import Instance


class SqliteAgents:
    """Sub-agents and inboxes; shares the connections of its store."""

    def __init__(self, transactions: Transactions, instance: Instance) -> None:
        self._transactions = transactions
        self._instance = instance

    async def create_all(self, new: Sequence[NewConversation], at: float) -> Sequence[StoredConversation]:
        """Create the sub-agents of one call in one transaction, owned here; their prompts wait in their inboxes."""

        def job(connection: sqlite3.Connection) -> Sequence[StoredConversation]:
            for one in new:
                conversations.create(connection, one, at)
                if one.agent is not None:
                    inbox.deposit(connection, one.id, "user", (TextBlock(one.prompt),), one.agent.parent_id, at)
                self._instance.claim(connection, one.id, at)
            return [conversations.record(connection, one.id, self._instance) for one in new]

        return await self._transactions.write(job)

    async def rows(self, parent_id: str) -> Sequence[AgentRow]:
        """Every sub-agent of a conversation, oldest first."""
        return await self._transactions.read(lambda connection: agent_rows.rows_of(connection, parent_id))

    async def row(self, agent_id: str) -> AgentRow | None:
        """One sub-agent, or None."""
        return await self._transactions.read(lambda connection: agent_rows.row_of(connection, agent_id))

    async def tell(self, agent_id: str, text: str, sender: str, at: float) -> None:
        """Put a message to a sub-agent at work into its inbox."""
        await self._transactions.write(
            lambda connection: inbox.deposit(connection, agent_id, "user", (TextBlock(text),), sender, at)
        )

    async def leave(self, agent_id: str, at: float) -> None:
        """Put the result of this sub-agent into its parent's inbox; it begins no turn."""
        await self._transactions.write(lambda connection: agent_ends.leave(connection, agent_id, at, quiet=True))

    async def waiting(self, conversation_id: str) -> int:
        """Number of waiting entries in an inbox."""
        return await self._transactions.read(lambda connection: inbox.waiting(connection, conversation_id))

    async def wakes(self, conversation_id: str) -> bool:
        """True when an entry waits that begins a turn of an idle conversation."""
        return await self._transactions.read(lambda connection: inbox.wakes(connection, conversation_id))
