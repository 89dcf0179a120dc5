"""The background commands of one conversation, and the running one that may become one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from engine.executor.changed_files import settle
from engine.executor.effect_runner import EffectRunner
from engine.executor.requests import Accepted, Receipt, Refused
from engine.executor.session import Session
from engine.updates import JobsChanged
from tools.contract import Captured, JobInfo, SelfStarting

NOTHING_RUNS: Final = "No running command can be sent to the background."


class BackgroundJobs:
    """Lists, reads and ends jobs. Stateless: the jobs are on the board, the running call in the machine."""

    def __init__(self, session: Session, runner: EffectRunner) -> None:
        self._session = session
        self._runner = runner
        self._leave: Callable[[], None] | None = None
        self._settling: dict[str, asyncio.Task[None]] = {}
        """Ended jobs that changed files which start by themselves, until these are kept or taken back."""
        self._closing = False

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
        self._withdraw()
        self._closing = True  # a question would have no one to answer it
        await self._session.ports.jobs.end_all(self._session.record.id)
        await self._stop_following()

    async def leave(self) -> None:
        """Stop reporting and asking; outputs stay readable, and the temporary folder stays."""
        self._withdraw()
        await self._stop_following()

    def _withdraw(self) -> None:
        """Leave the questions that are open: the files are taken back."""
        for task in self._settling.values():
            task.cancel()

    async def _stop_following(self) -> None:
        await asyncio.gather(*self._settling.values(), return_exceptions=True)
        await self._session.finish_background()
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _changed(self, conversation_id: str) -> None:
        if conversation_id != self._session.record.id:
            return
        self._session.publisher.publish(JobsChanged(self.all()))
        for job in self.all():
            if not job.running and job.id not in self._settling and (changed := self.output(job.id).changed):
                self._settling[job.id] = asyncio.create_task(self._settle(job, changed))

    async def _settle(self, job: JobInfo, changed: Sequence[SelfStarting]) -> None:
        """Keep or take back what an ended job changed, as for a command that a call waits for."""
        note = await settle(self._session, f"{job.id} ({job.command})", changed, asks=not self._closing)
        self._session.ports.jobs.settle(job.id, note)
