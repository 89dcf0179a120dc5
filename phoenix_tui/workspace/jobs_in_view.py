"""The background commands of the conversation in view: how many run, and which have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phoenix_tui.text.job_text import end_line, ended_since, running
from tools.contract import JobInfo


class JobsInView:
    """Says each end once; the status line counts those that run."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._jobs: Sequence[JobInfo] = ()

    def show(self, jobs: Sequence[JobInfo]) -> int:
        """How they stand as one begins to look; gives how many run."""
        self._jobs = jobs
        return running(jobs)

    def take(self, jobs: Sequence[JobInfo]) -> int:
        """One has begun or ended; gives how many run."""
        for job in ended_since(self._jobs, jobs):
            self._tell(end_line(job))
        return self.show(jobs)
