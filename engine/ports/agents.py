"""What the engine needs of a store for sub-agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.records import AgentRow, ConversationRecord, NewConversation


class AgentStore(Protocol):
    """Sub-agents and the inboxes of conversations. Every method may raise StorageError."""

    async def create_all(self, new: Sequence[NewConversation], at: float) -> Sequence[ConversationRecord]:
        """Create the sub-agents of one call in one transaction, owned by this process."""
        ...

    async def rows(self, parent_id: str) -> Sequence[AgentRow]:
        """Every sub-agent of a conversation, oldest first."""
        ...

    async def row(self, agent_id: str) -> AgentRow | None:
        """One sub-agent, or None."""
        ...

    async def make_background(self, agent_id: str) -> None:
        """From now on its end is told by a completion message."""
        ...

    async def tell(self, conversation_id: str, text: str, at: float) -> None:
        """Put a message of the user into an inbox: it is read before the next request."""
        ...

    async def waiting(self, conversation_id: str) -> int:
        """How many entries wait in an inbox."""
        ...
