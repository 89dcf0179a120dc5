"""What the screens need of stored conversations as a whole (`engine.ports.Library`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.call_records import CallSum
    from engine.records import FoundText, SearchAnswer
    from engine.run_records import RunRecord
    from engine.search import SearchQuery
    from engine.turn_records import TurnSummary
    from tools.contract import JsonObject


class LibrarySurface(Protocol):
    """What is done to whole conversations (`engine.ports.Library`)."""

    async def changed_elsewhere(self) -> bool:
        """Whether another process has written since this was last asked. Raises StorageError."""
        ...

    async def search(
        self, query: SearchQuery, *, limit: int = 300, below: int | None = None, seconds: float = 0.12
    ) -> SearchAnswer:
        """The newest `limit` matches, the best first; `below` is the `next` of the answer before."""
        ...

    async def find(self, conversation_id: str, text: str) -> Sequence[FoundText]:
        """Where `text` stands in one conversation, in its order."""
        ...

    async def turns(self, conversation_id: str) -> Sequence[TurnSummary]:
        """Every prompt and what it led to, oldest first."""
        ...

    async def runs(self, conversation_id: str, limit: int) -> Sequence[RunRecord]:
        """The newest runs, newest first."""
        ...

    async def calls(self, conversation_id: str) -> Sequence[CallSum]:
        """What its model calls used and cost, by their purpose; without those of its sub-agents."""
        ...

    async def export(self, conversation_id: str) -> JsonObject:
        """Everything of a conversation as JSON."""
        ...
