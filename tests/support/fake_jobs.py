"""Background commands in memory, on which nothing really runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from engine.executor.requests import Accepted, Receipt, Refused
from engine.updates import JobsChanged
from tools.contract import Captured, JobInfo

NOTHING_RUNS = "No running command can be sent to the background."


@dataclass
class FakeJobs:
    """`tell` reaches the subscribers of its conversation."""

    tell: Callable[[JobsChanged], None]
    listed: tuple[JobInfo, ...] = ()
    printed: dict[str, Captured] = field(default_factory=dict[str, Captured])
    runs: bool = False
    """True when a command runs that can be moved to the background."""
    let_go: int = 0

    def become(self, *jobs: JobInfo) -> None:
        self.listed = jobs
        self.tell(JobsChanged(jobs))

    def all(self) -> tuple[JobInfo, ...]:
        return self.listed

    def output(self, job_id: str) -> Captured:
        return self.printed.get(job_id, Captured(b""))

    async def kill(self, job_id: str) -> None:
        self.become(*(replace(job, running=False) if job.id == job_id else job for job in self.listed))

    def background(self) -> Receipt:
        if not self.runs:
            return Refused(NOTHING_RUNS)
        self.let_go += 1
        return Accepted()
