"""Interface of the store for sub-agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from engine.records import AgentRow, NewConversation, StoredConversation

USER: Final = "user"
"""Sender of messages that the user wrote."""


class AgentStore(Protocol):
    """Sub-agents and the inboxes of conversations. Every method may raise StorageError."""

    async def create_all(self, new: Sequence[NewConversation], at: float) -> Sequence[StoredConversation]:
        """Create the sub-agents of one call in one transaction, owned here; their prompts wait in their inboxes."""
        ...

    async def rows(self, parent_id: str) -> Sequence[AgentRow]:
        """Every sub-agent of a conversation, oldest first."""
        ...

    async def row(self, agent_id: str) -> AgentRow | None:
        """One sub-agent, or None."""
        ...

    async def tell(self, agent_id: str, text: str, sender: str, at: float) -> None:
        """Put a message to a sub-agent at work into its inbox: it is read before its next request.

        `sender` is USER or the id of its parent.
        """
        ...

    async def leave(self, agent_id: str, at: float) -> None:
        """Put the result of this sub-agent into its parent's inbox, which waits for it no more; it begins no turn."""
        ...

    async def waiting(self, conversation_id: str) -> int:
        """Number of waiting entries in an inbox."""
        ...

    async def wakes(self, conversation_id: str) -> bool:
        """True when an entry waits that begins a turn of an idle conversation.

        The end of a sub-agent that was stopped or that a restart cut off waits for the user instead.
        """
        ...
