"""Interface of the store for runs by id, from any process: found, followed, cancelled (SPEC SDK-03, SDK-11)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from engine.records.runs import RunRecord

QUEUED: Final = "queued"
"""Status of a sub-agent that has not begun: there is no run yet, and `record.id` is empty."""
UNDER_WAY: Final = frozenset({QUEUED, "running"})


class RunOverview(Struct, frozen=True):
    """One run, with the conversation it belongs to."""

    record: RunRecord
    conversation_id: str
    title: str
    """Title of the conversation; of a sub-agent its task."""
    parent_id: str = ""
    """The conversation that a sub-agent works for."""
    error_code: str = ""
    owner_pid: int | None = None
    """The living process that has the conversation."""

    @property
    def under_way(self) -> bool:
        """True while it has not ended."""
        return self.record.status in UNDER_WAY


class CancelRequest(Struct, frozen=True):
    """A request of another process; without a run it is for a sub-agent that has not begun."""

    conversation_id: str
    run_id: str
