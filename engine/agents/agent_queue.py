"""Queue of sub-agents that wait for a free place (SPEC SDK-10)."""

from __future__ import annotations

from engine.records import RunPriority

_RANK = {RunPriority.CRITICAL: 0, RunPriority.HIGH: 1, RunPriority.NORMAL: 2, RunPriority.LOW: 3}


class AgentQueue:
    """Ids in order of priority, then of arrival; at most `room` are out at once."""

    def __init__(self, room: int) -> None:
        self._room = max(room, 1)
        self._waiting: list[tuple[int, int, str]] = []
        self._out: set[str] = set()
        self._arrivals = 0

    def join(self, agent_id: str, priority: RunPriority) -> None:
        """Wait for a place."""
        self._arrivals += 1
        self._waiting.append((_RANK[priority], self._arrivals, agent_id))
        self._waiting.sort()

    def leave(self, agent_id: str) -> None:
        """Wait no longer, or free the place."""
        self._waiting = [one for one in self._waiting if one[2] != agent_id]
        self._out.discard(agent_id)

    def call(self) -> list[str]:
        """Give places to as many waiting ids as are free, and return them."""
        free = max(self._room - len(self._out), 0)
        called = [agent_id for _, _, agent_id in self._waiting[:free]]
        self._waiting = self._waiting[free:]
        self._out |= set(called)
        return called

    def is_out(self, agent_id: str) -> bool:
        """True when it has a place."""
        return agent_id in self._out
