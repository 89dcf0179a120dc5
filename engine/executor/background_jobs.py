"""The background commands of one conversation, and the running one that may become one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.executor.effect_runner import EffectRunner
from engine.executor.requests import Accepted, Receipt, Refused
from engine.executor.session import Session
from engine.updates import JobsChanged
from tools.contract import Captured, JobInfo

NOTHING_RUNS: Final = "No running command can be sent to the background."


class BackgroundJobs:
    """Lists, reads and ends jobs. Stateless: the jobs are on the board, the running call in the machine."""

    def __init__(self, session: Session, runner: EffectRunner) -> None:
        self._session = session
        self._runner = runner
        self._leave: Callable[[], None] | None = None

    def all(self) -> tuple[JobInfo, ...]:
        """Oldest first, ended ones included."""
        return self._session.ports.jobs.jobs(self._session.record.id)

    def output(self, job_id: str) -> Captured:
        """Output of a job so far. Raises KeyError for an unknown id."""
        return self._session.ports.jobs.output(job_id)

    async def kill(self, job_id: str) -> None:
        """End one with everything it started. Raises KeyError for an unknown id."""
        await self._session.ports.jobs.kill(job_id)

    def background(self) -> Receipt:
        """Turn the running command into a job: its call ends at once, and the run continues."""
        session = self._session
        job = None if session.read_only else self._runner.background()
        return Accepted() if job is not None else Refused(session.read_only or NOTHING_RUNS)

    def follow(self) -> None:
        """Report the begin and end of jobs to the subscribers from now on."""
        self._leave = self._session.ports.jobs.watch(self._changed)

    async def end(self) -> None:
        """End all of them: the conversation closes."""
        await self._session.ports.jobs.end_all(self._session.record.id)
        self.leave()

    def leave(self) -> None:
        """Stop reporting; outputs stay readable, and the temporary folder stays."""
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _changed(self, conversation_id: str) -> None:
        if conversation_id == self._session.record.id:
            self._session.publisher.publish(JobsChanged(self.all()))
