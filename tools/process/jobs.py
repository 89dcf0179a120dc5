"""Background commands, from the start or moved there later: readable, killable, ended with their conversation."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from tools.bash import Caller
from tools.contract import UNCONFINED, Captured, Command, Finished, JobInfo, Report, Sandbox
from tools.process.supervision import Running, Supervision

if TYPE_CHECKING:
    from tools.process.command_terminal import CommandTerminal

ENDED_KEPT = 20
"""Ended jobs of a conversation whose output can still be read."""
NOTHING = Captured(b"")


class Job(Struct, eq=False):
    """One background command."""

    id: str
    conversation_id: str
    title: str
    running: Running
    sandbox: Sandbox = UNCONFINED
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    elapsed: float = 0.0
    exit_code: int | None = None
    captured: Captured = NOTHING


class Awaited(Struct, eq=False):
    """A command whose caller waits for its end; with a job it waits no longer."""

    caller: Caller
    running: Running
    sandbox: Sandbox
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    job: Job | None = None
    terminal: CommandTerminal | None = None


class JobTable:
    """Implements `tools.bash.JobBoard`."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._jobs: dict[str, Job] = {}
        self._awaited: dict[tuple[str, str], Awaited] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners: list[Callable[[str], None]] = []

    async def start(self, command: Command, conversation_id: str, title: str, report: Report | None = None) -> JobInfo:
        """Start a command and return at once; `report` hears of one that is stopped as it begins.

        Raises:
            OSError: it cannot be started.
        """
        running = await self._supervision.start(command, report, conversation_id)
        running.execution.fall_silent()
        running.is_settled = True
        return _describe_job(self._keep(running, conversation_id, title, command.sandbox, command.timeout))

    async def run(self, command: Command, caller: Caller, report: Report | None = None) -> Finished | JobInfo:
        """Run to the end, or until `background` makes a job of it. Cancelling kills the tree of one that is none.

        Raises:
            OSError: the program cannot be started.
        """
        awaited = await self._start_awaited(command, caller, report)
        awaited.running.is_settled = True
        running, place = awaited.running, (caller.conversation_id, caller.call_id)
        self._awaited[place] = awaited
        try:
            finished = await self._supervision.see_through(running, command.timeout, awaited.let_go)
        finally:
            if self._awaited.get(place) is awaited:  # while one dies slowly, another may have started
                del self._awaited[place]
        if finished is not None:
            return finished
        assert awaited.job is not None, "it is let go as a job alone"
        return _describe_job(awaited.job)

    def background(self, conversation_id: str, call_id: str) -> JobInfo | None:
        """Make a job of the command that a call waits for; None where there is none, or it is about to end."""
        awaited = self._awaited.get((conversation_id, call_id))
        if awaited is None or awaited.job is not None:
            return None
        if awaited.running.ending is not None or awaited.running.execution.is_ending:
            return None
        awaited.running.execution.fall_silent()
        awaited.job = self._keep(awaited.running, conversation_id, awaited.caller.title, awaited.sandbox)
        awaited.let_go.set()
        return _describe_job(awaited.job)

    def terminal(self, conversation_id: str, call_id: str) -> CommandTerminal | None:
        """Terminal of the command that a call waits for; None where it has none."""
        awaited = self._awaited.get((conversation_id, call_id))
        return awaited.terminal if awaited is not None and awaited.job is None else None

    def watch(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the conversation whose jobs have changed, whenever one begins or ends; the result ends
        it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def jobs(self, conversation_id: str) -> tuple[JobInfo, ...]:
        """Jobs of one conversation, oldest first, ended ones included."""
        return tuple(_describe_job(job) for job in self._jobs.values() if job.conversation_id == conversation_id)

    def output(self, job_id: str) -> Captured:
        """Output of a job so far. Raises KeyError for an unknown id."""
        job = self._jobs[job_id]
        return job.captured if job.ended.is_set() else job.running.execution.capture()

    def settle(self, job_id: str, note: str) -> None:
        """Note that the files which an ended job changed are kept or taken back; nothing for an unknown id."""
        if (job := self._jobs.get(job_id)) is not None:
            notes = (*job.captured.notes, *filter(None, (note,)))
            job.captured = replace(job.captured, notes=notes, changed=())
            self._tell(job.conversation_id)

    async def kill(self, job_id: str) -> JobInfo:
        """End its whole tree. Raises KeyError for an unknown id."""
        job = self._jobs[job_id]
        await self._supervision.end(job.running)
        await job.ended.wait()
        return _describe_job(job)

    async def end_all(self, conversation_id: str) -> None:
        """End every job of a conversation that goes away, and forget them."""
        going = [job for job in self._jobs.values() if job.conversation_id == conversation_id]
        await asyncio.gather(*(self._supervision.end(job.running) for job in going))
        for job in going:
            await job.ended.wait()
            self._jobs.pop(job.id, None)
        await self._supervision.forget(conversation_id)

    async def close(self) -> None:
        """End every job there is."""
        for conversation_id in {job.conversation_id for job in self._jobs.values()}:
            await self.end_all(conversation_id)

    async def _start_awaited(self, command: Command, caller: Caller, report: Report | None) -> Awaited:
        """A command that runs, in a terminal where its caller wants one."""
        size = caller.terminal
        if size is None:
            running = await self._supervision.start(command, report, caller.conversation_id)
            return Awaited(caller, running, command.sandbox)
        from tools.process.command_terminal import CommandTerminal  # noqa: PLC0415 - no start needs it

        running, terminal = await self._supervision.start_with(
            command, caller.conversation_id, lambda: CommandTerminal(command, size, report, caller.mark), report
        )
        return Awaited(caller, running, command.sandbox, terminal=terminal)

    def _keep(
        self, running: Running, conversation_id: str, title: str, sandbox: Sandbox, limit: float | None = None
    ) -> Job:
        job = Job(f"job-{next(self._numbers)}", conversation_id, title, running, sandbox)
        self._jobs[job.id] = job
        task = asyncio.create_task(self._follow(job, limit), name=job.id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        ended = [job for job in self._jobs.values() if job.conversation_id == conversation_id and job.ended.is_set()]
        for job in ended[:-ENDED_KEPT]:
            del self._jobs[job.id]
        self._tell(conversation_id)
        return job

    async def _follow(self, job: Job, limit: float | None) -> None:
        execution = job.running.execution
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await execution.over.wait()
        finally:
            captured = await self._supervision.end(job.running)
            job.captured = captured
            finished = execution.build_result(job.captured, timed_out=False)
            job.exit_code = finished.exit_code
            job.elapsed = finished.duration
            job.ended.set()
            self._tell(job.conversation_id)

    def _tell(self, conversation_id: str) -> None:
        for listener in tuple(self._listeners):
            listener(conversation_id)


def _describe_job(job: Job) -> JobInfo:
    running = not job.ended.is_set()
    elapsed = job.running.execution.elapsed if running else job.elapsed
    return JobInfo(job.id, job.conversation_id, job.title, running, job.exit_code, elapsed, job.sandbox)
