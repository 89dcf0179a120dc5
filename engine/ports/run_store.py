"""Interface of the store for runs by id, from any process: found, followed, cancelled (SPEC SDK-03, SDK-11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

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


class RunStore(Protocol):
    """Runs of every conversation. Every method may raise StorageError."""

    async def newest(self, conversation_id: str, limit: int) -> Sequence[RunOverview]:
        """The newest runs, newest first; of one conversation, or of all where it is empty."""
        ...

    async def find(self, reference: str, limit: int) -> Sequence[RunOverview]:
        """Runs whose id is `reference`, else those whose id or conversation's id begins with it.

        Of a conversation the newest run; of a sub-agent that has not begun its place in the queue.
        """
        ...

    async def read(self, conversation_id: str, run_id: str) -> RunOverview | None:
        """One run as it is now, with the results of its sub-agents; None where it was deleted."""
        ...

    async def is_taken(self, run_id: str) -> bool:
        """True when a run has this id."""
        ...

    async def request_cancel(self, conversation_id: str, run_id: str, at: float) -> bool:
        """Ask the process that has the conversation to cancel the run; False where it has ended already."""
        ...

    async def take_requests(self) -> Sequence[CancelRequest]:
        """Take out the requests for runs of this process."""
        ...

    async def foreign_version(self) -> int:
        """A number that changes with each commit of another process."""
        ...
