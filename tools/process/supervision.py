"""Starting and ending executions: shared by the runner of tools and the table of background jobs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tools.contract import Captured, Command, Finished, HostVerdict, Progress, Report, SandboxedStartError
from tools.process.execution import Execution, NotSupervisedError
from tools.process.link import ZygoteLink
from tools.process.network import NetworkServer, NetworkUse
from tools.process.output import Output, ProgramStreams
from tools.process.plan import CommandPlan, Planner, to_the_end
from tools.process.zygote.tree import children, kill_below, name_of, send, start_ticks

GIVE_UP = 1.0
"""Seconds a supervisor gets to empty its tree before Phoenix reports survivors."""
ATTEMPTS = 2
"""A dead zygote is replaced once per command."""
PLANS = 5
"""Sandboxes that are planned for one command while what they name is removed: the home folder is alive."""
ANSWER_LIMIT = 5.0
"""Seconds after which a zygote that forked no supervisor is replaced: a command may have stopped it."""
LOOK_LIMIT = 1.0
"""Seconds for looks at the paths that a failed program names; one may lie on a file system that does not answer."""
NO_PROC = "/proc is not mounted, and the supervision of commands needs it; mount it with `mount -t proc proc /proc`"
LAUNCH_PAUSE = 0.002
WATCH_PAUSE = 2.0
"""Seconds between two looks at the workspace of a command that runs, at least."""
WATCH_SHARE = 30.0
"""Times the duration of the last look that the next one waits: looks take a thirtieth of a processor."""
UNSEEN_LOOK = 0.03
"""Seconds of a look that a person does not notice; for a longer one the end of the program is reported first."""
SWEEP_PAUSE = 0.005

MadeStreams = TypeVar("MadeStreams", bound=ProgramStreams)


class Running(Struct, eq=False):
    """An execution, and the confinement of its sandbox on disk."""

    execution: Execution
    plan: CommandPlan
    ending: asyncio.Task[Captured] | None = None
    watching: asyncio.Task[None] | None = None
    """Looks at its workspace while it runs."""
    is_settled: bool = False
    """True where its caller keeps or takes back the self-starting files that it changed."""


def lacks_proc() -> bool:
    """True on a Linux whose /proc is not mounted, where no command can be supervised."""
    return sys.platform == "linux" and not os.path.exists("/proc/self/stat")


class Supervision:
    """All executions of this Phoenix."""

    def __init__(self, link: ZygoteLink, planner: Planner) -> None:
        self._link = link
        self._planner = planner
        self._live: set[Running] = set()
        self._starting: set[asyncio.Future[None]] = set()
        """One for each start that is under way."""
        self._closed = False
        self.network = NetworkServer(_serve_none, _serve_none)
        """The server of listeners, which `HostProxy` replaces."""

    async def start(
        self,
        command: Command,
        report: Callable[[Progress], None] | None = None,
        owner: str = "",
        streams: Callable[[], ProgramStreams] | None = None,
    ) -> Running:
        """Start a command of the conversation `owner` and return once it runs.

        `streams` makes other streams than one captured output; each attempt has its own.

        Raises:
            OSError: it cannot be started, or the sandbox in force cannot hold it.
        """
        unsupervised = 0
        for attempt in range(1, PLANS + 1):
            zygote = self._link.pid
            plan = await self._planner.plan(command, owner)
            try:
                return await self.start_planned(command, plan, report, streams)
            except NotSupervisedError:
                self._refuse_when_closed()  # a new zygote would outlive the close
                self._link.restart(zygote)
                unsupervised += 1
                if unsupervised == ATTEMPTS:
                    break
            except FileNotFoundError:  # guarded or hidden paths may have been removed since the plan
                if plan.confinement.lease is None or attempt == PLANS:
                    raise
        raise OSError(NO_PROC if lacks_proc() else "the process helper of Phoenix does not stay alive")

    async def start_with(
        self,
        command: Command,
        owner: str,
        streams: Callable[[], MadeStreams],
        report: Callable[[Progress], None] | None = None,
    ) -> tuple[Running, MadeStreams]:
        """Start a command as `start` does; returns the streams of the attempt that succeeded, too.

        Raises:
            OSError: it cannot be started, or the sandbox in force cannot hold it.
        """
        made: list[MadeStreams] = []

        def make() -> MadeStreams:
            made.append(streams())
            return made[-1]

        running = await self.start(command, report, owner, make)
        return running, made[-1]

    async def end(self, running: Running) -> Captured:
        """Kill what is left of the tree, wait until it is gone, collect the output; once for all callers."""
        if running.ending is None:
            running.ending = asyncio.create_task(self._end(running))
        return await to_the_end(running.ending)

    async def _keep_watch(self, running: Running) -> None:
        """Look at the workspace of a long command now and then: programs outside start while it runs."""
        pause = WATCH_PAUSE
        while not running.execution.over.is_set():
            try:
                async with asyncio.timeout(pause):
                    await running.execution.over.wait()
            except TimeoutError:
                pause = max(WATCH_PAUSE, WATCH_SHARE * await self._planner.look(running.plan))

    async def _end(self, running: Running) -> Captured:
        execution = running.execution
        if running.watching is not None:
            running.watching.cancel()
        if not execution.over.is_set():
            execution.kill()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GIVE_UP):
                    await execution.over.wait()
        account = execution.account
        try:
            if not account.ended and not account.survivors:
                await self._sweep_orphans(running)
            captured = await execution.finish()
            if execution.use is not None and (hosts := await execution.use.end()):
                captured = replace(captured, hosts=hosts)
            self._live.discard(running)
            refused = await self.refusals(running, captured) if account.status else ""
        finally:  # the look at what it left must come, whatever failed before
            release = asyncio.create_task(self._planner.release(running.plan))
        done, _ = await asyncio.wait({release}, timeout=UNSEEN_LOOK)
        if not done:
            execution.report_program(captured)
        left = await release
        if left.changed and not running.is_settled:
            left = self._planner.put_off(running.plan, left)
        if done and left.changed:  # a question about them may follow, and the row says that the command is over
            execution.report_program(captured)
        if not (left.said or left.changed or refused):
            return captured
        return replace(captured, notes=left.said, changed=left.changed, refused=refused)

    async def refusals(self, running: Running, *outputs: Captured) -> str:
        """Clauses on what the sandbox refused to a program that failed, by its outputs; empty without a refusal."""
        text = "\n".join((output.head + output.tail).decode("utf-8", "replace") for output in outputs)
        return await _look(text, running.plan)

    async def see_through(self, running: Running, limit: float | None, let_go: asyncio.Event) -> Finished | None:
        """Wait until the command has ended or `limit` seconds are over, then end its tree; None when it was released
        before.

        Cancelling ends it too, unless it was let go.
        """
        over = running.execution.over
        waits = [asyncio.create_task(event.wait()) for event in (over, let_go)]
        try:
            in_time = await self._in_time(running, waits, limit)
            if let_go.is_set():
                return None
            captured = await self.end(running)
        except asyncio.CancelledError:
            if not let_go.is_set():
                # A tree that dies slowly must not keep its output from the one who stopped it.
                execution = running.execution
                execution.kill()
                execution.report_output(execution.capture())
                execution.report_output(await self.end(running))
                execution.report_end()
            raise
        finally:
            for wait in waits:
                wait.cancel()
        return running.execution.build_result(captured, timed_out=not in_time)

    async def _in_time(self, running: Running, waits: list[asyncio.Task[Literal[True]]], limit: float | None) -> bool:
        """Wait for the first of `waits`; False where `limit` seconds are over. Time that a person takes to answer about
        a host is not counted.
        """
        use, counted = running.execution.use, 0.0
        while True:
            done, _ = await asyncio.wait(waits, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if done or use is None or use.lent <= counted:
                return bool(done)
            limit, counted = use.lent - counted, use.lent

    async def forget(self, owner: str) -> None:
        """Remove the sandbox folders of a conversation that closes."""
        await self._planner.forget(owner)

    async def end_everything(self) -> None:
        """End every execution there is, and what is just being started; from here on nothing starts."""
        self._closed = True
        await self._end_the_live()
        if self._starting:  # each ends itself as it finds the supervision closed
            await asyncio.wait(tuple(self._starting), timeout=ANSWER_LIMIT)
            await self._end_the_live()

    async def _end_the_live(self) -> None:
        await asyncio.gather(*(self.end(running) for running in tuple(self._live)))

    async def start_planned(
        self,
        command: Command,
        plan: CommandPlan,
        report: Callable[[Progress], None] | None = None,
        streams: Callable[[], ProgramStreams] | None = None,
    ) -> Running:
        """Start a command by a plan already made.

        Raises:
            OSError: it cannot be started.
            NotSupervisedError: there was no zygote to start it.
        """
        self._refuse_when_closed()
        start = asyncio.get_running_loop().create_future()
        self._starting.add(start)
        try:
            return await self._start(command, plan, report, streams)
        finally:
            self._starting.discard(start)
            start.set_result(None)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise OSError(errno.ECANCELED, "Phoenix is closing and starts no further program")

    async def _start(
        self,
        command: Command,
        plan: CommandPlan,
        report: Callable[[Progress], None] | None,
        streams: Callable[[], ProgramStreams] | None,
    ) -> Running:
        running = await self._prepare(command, plan, report, streams)
        self._live.add(running)
        account = running.execution.account
        try:
            await running.execution.start(plan.request, self._link)
            await _begin(running.execution)
            self._refuse_when_closed()
        except BaseException as error:  # also after a cancellation: no process may survive
            running.is_settled = report is not None and isinstance(error, asyncio.CancelledError)
            captured = await self.end(running)
            if isinstance(error, asyncio.CancelledError):
                if account.pid:
                    running.execution.report_output(captured)
                running.execution.report_end()
            raise
        if account.pid:
            if plan.confinement.watched is not None:
                running.watching = asyncio.create_task(self._keep_watch(running))
            return running
        await self.end(running)
        if account.failure:
            subject = command.argv[0] if command.working_dir.is_dir() else str(command.working_dir)
            words = os.strerror(account.failure)
            refused = await _look(f"{words}: '{subject}'", plan)
            if not refused:
                raise OSError(account.failure, words, subject)
            failure = SandboxedStartError(account.failure, words, subject)
            failure.refused = refused
            raise failure
        raise NotSupervisedError

    async def _prepare(
        self,
        command: Command,
        plan: CommandPlan,
        report: Callable[[Progress], None] | None,
        streams: Callable[[], ProgramStreams] | None,
    ) -> Running:
        """The execution, with descriptors of its own.

        Raises:
            OSError: there are no descriptors left.
        """
        made: ProgramStreams | None = None
        try:
            made = Output(command, report) if streams is None else streams()
            use = NetworkUse(command.gate or _refuse, self.network) if plan.request.door else None
            return Running(Execution(made, report, use), plan)
        except OSError:
            if made is not None:
                await made.finish()
            await self._planner.release(plan)
            raise

    async def _sweep_orphans(self, lost: Running) -> None:
        """Kill the tree of a supervisor that was killed or stopped: its orphans are the zygote's, or ours.

        The control socket closes a moment before the orphans move, hence the wait for the supervisor's end.
        """
        account = lost.execution.account
        if sys.platform != "linux" or not account.supervisor:
            return
        if account.supervisor in {*children(self._link.pid), *children(os.getpid())}:
            send(account.supervisor, signal.SIGKILL)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GIVE_UP
        while loop.time() < deadline:
            if name_of(account.supervisor) or self._is_launching():
                await asyncio.sleep(LAUNCH_PAUSE)
                continue
            left = self._kill_orphans(account.started, account.supervisor)
            account.survivors = tuple(sorted(left))
            if not left:
                return
            await asyncio.sleep(SWEEP_PAUSE)

    def _is_launching(self) -> bool:
        """True while a supervisor's pid is unknown: it must not be taken for an orphan."""
        executions = (other.execution for other in self._live)
        return any(not execution.account.supervisor and not execution.over.is_set() for execution in executions)

    def _kill_orphans(self, started: int, supervisor: int) -> set[int]:
        """One round; returns the pids that are not dead yet."""
        known = {other.execution.account.supervisor for other in self._live} - {supervisor, 0}
        killed = kill_below(self._link.pid, frozenset(known))
        mine = children(os.getpid())
        older = {pid for pid in mine if start_ticks(pid) < started or not started}
        adopted = set(mine) - older - known - {self._link.pid}
        killed |= kill_below(os.getpid(), frozenset({self._link.pid, *known, *older}))
        for pid in adopted:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return {pid for pid in killed if name_of(pid)}


async def _look(text: str, plan: CommandPlan) -> str:
    if plan.confinement.lease is None or not text.strip():
        return ""
    from tools.shell_output import SandboxView, refusals  # noqa: PLC0415 - only a program that failed needs it

    view = SandboxView(plan.folder, plan.sandbox, plan.confinement.places, plan.confinement.secret)
    with contextlib.suppress(TimeoutError, OSError, ValueError, RuntimeError):  # a hint costs no result
        async with asyncio.timeout(LOOK_LIMIT):
            return await asyncio.to_thread(refusals, text, view)
    return ""


async def _refuse(host: str, _port: int) -> HostVerdict:
    """Answer for a command whose caller decides about no hosts."""
    return HostVerdict(allowed=False, why=f"{host} is not allowed")


async def _serve_none(*_: object) -> None:
    """Serve no listener: its connections are refused as it closes."""


async def _begin(execution: Execution) -> None:
    """Wait for the program to run.

    Raises:
        NotSupervisedError: the zygote does not answer.
    """
    try:
        async with asyncio.timeout(ANSWER_LIMIT):
            await execution.begun.wait()
    except TimeoutError:
        if not execution.account.supervisor:
            raise NotSupervisedError from None
        await execution.begun.wait()


class SupervisedRunner:
    """Implements `tools.contract.ProcessRunner`."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        """Run to the end. On cancellation the tree is dead before this returns.

        Raises:
            OSError: the program cannot be started.
        """
        running = await self._supervision.start(command, report)
        finished = await self._supervision.see_through(running, command.timeout, asyncio.Event())
        assert finished is not None, "nobody else has the event"
        return finished
