"""Port of the store for the user's message queue (SPEC DOM-04, `queued_messages`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from engine.records import QueuedMessage


class QueueStore(Protocol):
    """The messages that wait until a conversation is idle. Every method may raise StorageError."""

    async def queued(self, conversation_id: str) -> tuple[QueuedMessage, ...]:
        """Queued messages, first to be sent first."""
        ...

    async def keep_queue(
        self, conversation_id: str, waiting: Sequence[QueuedMessage], at: float, known: Collection[str] = ()
    ) -> None:
        """Make `waiting` the queue, in one transaction. Raises OwnedElsewhere.

        Of the `known` messages, which were queued before, those are left out that a move has delivered meanwhile.
        """
        ...
