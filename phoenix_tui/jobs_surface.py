"""What the screens need of a conversation's background commands (`engine.executor.background_jobs`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.executor.requests import Receipt
    from tools.contract import Captured, JobInfo


class JobsSurface(Protocol):
    """Commands that nobody waits for."""

    def all(self) -> tuple[JobInfo, ...]:
        """Oldest first, ended ones included."""
        ...

    def output(self, job_id: str) -> Captured:
        """What one has printed so far. Raises KeyError for an unknown id."""
        ...

    async def kill(self, job_id: str) -> None:
        """End one with everything it started. Raises KeyError for an unknown id."""
        ...

    def background(self) -> Receipt:
        """Let the command that runs go on as a job: its call ends at once, and the run goes on."""
        ...
