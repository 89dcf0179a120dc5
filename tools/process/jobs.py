"""Background commands: started by a conversation, readable while they run, gone with it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

from msgspec import Struct, field

from tools.contract import Captured, Command, JobInfo
from tools.process.supervision import Running, Supervision

ENDED_KEPT = 20
"""Ended jobs of a conversation whose output can still be read."""
NOTHING = Captured(b"")


class Job(Struct, eq=False):
    """One background command."""

    id: str
    conversation_id: str
    title: str
    running: Running
    began: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    elapsed: float = 0.0
    exit_code: int | None = None
    captured: Captured = NOTHING


class JobTable:
    """Implements `tools.contract.JobBoard`."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._jobs: dict[str, Job] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, command: Command, conversation_id: str, title: str) -> JobInfo:
        """Start a command and return at once.

        Raises:
            OSError: it cannot be started.
        """
        running = await self._supervision.start(command)
        loop = asyncio.get_running_loop()
        job = Job(f"job-{next(self._numbers)}", conversation_id, title, running, loop.time())
        self._jobs[job.id] = job
        task = asyncio.create_task(self._follow(job, command.timeout), name=job.id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._forget_the_oldest(conversation_id)
        return _shown(job)

    def jobs(self, conversation_id: str) -> tuple[JobInfo, ...]:
        """Those of one conversation, oldest first, ended ones included."""
        return tuple(_shown(job) for job in self._jobs.values() if job.conversation_id == conversation_id)

    def output(self, job_id: str) -> Captured:
        """What it has printed so far. Raises KeyError for an unknown id."""
        job = self._jobs[job_id]
        return job.captured if job.ended.is_set() else job.running.execution.captured()

    async def kill(self, job_id: str) -> JobInfo:
        """End its whole tree. Raises KeyError for an unknown id."""
        job = self._jobs[job_id]
        await self._supervision.end(job.running)
        await job.ended.wait()
        return _shown(job)

    async def end_all(self, conversation_id: str) -> None:
        """End every job of a conversation that goes away, and forget them."""
        going = [job for job in self._jobs.values() if job.conversation_id == conversation_id]
        await asyncio.gather(*(self._supervision.end(job.running) for job in going))
        for job in going:
            await job.ended.wait()
            self._jobs.pop(job.id, None)

    async def close(self) -> None:
        """End every job there is."""
        for conversation_id in {job.conversation_id for job in self._jobs.values()}:
            await self.end_all(conversation_id)

    async def _follow(self, job: Job, limit: float | None) -> None:
        execution = job.running.execution
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await execution.over.wait()
        finally:
            job.captured = await self._supervision.end(job.running)
            finished = execution.finished(job.captured, timed_out=False)
            job.exit_code = finished.exit_code
            job.elapsed = finished.duration
            job.ended.set()

    def _forget_the_oldest(self, conversation_id: str) -> None:
        ended = [job for job in self._jobs.values() if job.conversation_id == conversation_id and job.ended.is_set()]
        for job in ended[:-ENDED_KEPT]:
            del self._jobs[job.id]


def _shown(job: Job) -> JobInfo:
    running = not job.ended.is_set()
    elapsed = asyncio.get_running_loop().time() - job.began if running else job.elapsed
    return JobInfo(job.id, job.conversation_id, job.title, running, job.exit_code, elapsed)
