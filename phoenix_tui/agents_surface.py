"""What the screens need of sub-agents (`engine.sub_agents`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.updates import AgentView


class AgentsSurface(Protocol):
    """The sub-agents of every conversation that is open here."""

    def views(self, parent_id: str) -> Sequence[AgentView]:
        """How a conversation's sub-agents stand, oldest first; those of earlier days too."""
        ...

    def results(self, parent_id: str) -> int:
        """How many of their ends the conversation's model has not read yet."""
        ...

    def stop(self, agent_ids: Iterable[str]) -> None:
        """Stop these; what they had written stays."""
        ...

    async def hint(self, agent_id: str, text: str) -> None:
        """A message to one: it reads it before its next model call, or goes on with it. Raises EngineError."""
        ...
