"""Starts and stops the work of one conversation: a model call, a tool, timers. Never waits for any of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, TypeAlias, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from engine.codec import encode_display
from engine.executor.call_questions import settle
from engine.executor.compacting import cause_of, compact
from engine.executor.event_hooks import decide_stop, notify, stop_hooks, stop_idle_timer, tell_agent_started
from engine.executor.guarding import inspect_result
from engine.executor.model_call import call_model
from engine.executor.requests import Accepted, InboxEntry, Priority, Receipt, Refused, RunCaps, RunFacts
from engine.executor.routing import route
from engine.executor.session import Session
from engine.executor.tool_call import CallFacts, run_tool
from engine.executor.window import describe_failure
from engine.machine import texts
from engine.machine.effects import (
    AbortLlm,
    Act,
    AfterRun,
    AskApproval,
    AskStopHooks,
    CancelAgents,
    CancelTimer,
    Compact,
    ExecTool,
    KillTool,
    Notice,
    Refuse,
    RequestLlm,
    RouteRequest,
    ScheduleRetry,
    StartCancelDeadline,
)
from engine.machine.events import (
    CancelDeadlinePassed,
    CompactionEnded,
    LlmFailed,
    RetryDue,
    RouteDecided,
    StopDecided,
    StoppedOutput,
    StragglersEnded,
    ToolAborted,
    ToolFinished,
    UserCancelled,
)
from engine.machine.messages import ToolResult, ToolStatus
from engine.machine.states import Cancelling, StopCause, ToolExecuting, ToolOrigin
from engine.ports import SuppressWakes, Write
from engine.updates import AnswerEnded, ApprovalAsked, JobsChanged, Noticed, RetryScheduled, RunningCall
from tools.call_titles import tool_label
from tools.contract import Captured, JobInfo, OutputSoFar, SelfStarting, TerminalDisplay
from tools.shell_output import all_lines, readable, show_runs


def collect_stopped_output(
    session: Session, so_far: OutputSoFar | None, elapsed: float, ended: int = 0, survivors: tuple[int, ...] = ()
) -> tuple[StoppedOutput | None, tuple[Write, ...]]:
    """The output for the event that ends a stopped call, and the writes for its move; `elapsed` is in seconds.

    None where no command had begun, or the call has ended already.
    """
    state = session.state
    if so_far is None or not isinstance(state, Cancelling):
        return None, ()
    line = texts.describe_stopped_command(int(elapsed), state.by, ended, survivors)
    captured = so_far.captured
    output = readable(captured)
    body = output.rstrip()
    runs = show_runs(captured, output)
    shown = f"{body}\n{line}" if body else line
    display = TerminalDisplay(shown, None, lines=all_lines(captured), runs=runs, folder=so_far.folder)
    text = "\n".join([body or "[no output]", *([f"[in {so_far.folder}]"] if so_far.folder else []), line])
    stopped = StoppedOutput(text, encode_display(display), truncated=captured.dropped > 0)
    if state.round.origin is not ToolOrigin.USER:
        return stopped, ()
    call = state.round.current
    result = ToolResult(call.id, stopped.text, ToolStatus.CANCELLED, display_json=stopped.display_json)
    result, note, writes = inspect_result(session, call, result)
    return replace(stopped, text=result.text, note=note), writes


log = logging.getLogger(__name__)

FAILED_INSIDE = "Internal error; the log has the details (phoenix doctor names the file)"

AskingAct: TypeAlias = RequestLlm | AbortLlm | ScheduleRetry | CancelTimer | Compact | RouteRequest
ToolAct: TypeAlias = ExecTool | KillTool | StartCancelDeadline | AskApproval


class EffectRunner(Struct, eq=False):
    """The running effects of one conversation."""

    session: Session
    calls: dict[str, CallFacts] = field(default_factory=dict[str, CallFacts])
    _model: asyncio.Task[None] | None = None
    _tool: asyncio.Task[None] | None = None
    _retry: asyncio.TimerHandle | None = None
    _others: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def start(self, act: Act) -> None:
        """Begin one act; its answer comes through the inbox."""
        limit = self.session.moves.limit
        if isinstance(act, AskApproval):
            limit.pause()
        else:
            limit.go_on()
        match act:
            case RequestLlm() | AbortLlm() | ScheduleRetry() | CancelTimer() | Compact() | RouteRequest():
                self._start_asking(act)
            case AskStopHooks():
                decided = StopDecided(act.gen)
                self._model = self._spawn(decide_stop(self.session, act), lambda: self.session.post(lambda: decided))
            case ExecTool() | KillTool() | StartCancelDeadline() | AskApproval():
                self._start_tool(act)
            case Notice(text):
                self.session.publisher.publish(Noticed(text))
            case CancelAgents(agent_ids):
                if self.session.equipment.sub_agents is not None:
                    self.session.equipment.sub_agents.stop(agent_ids)
            case AfterRun(run_id):
                self.session.publisher.publish(AnswerEnded(run_id))
            case Refuse():
                pass  # it is an answer
            case _:
                assert_never(act)

    def _start_asking(self, act: AskingAct) -> None:
        session = self.session
        match act:
            case RequestLlm():
                self._model = self._spawn(call_model(session, act), lambda: self._report_model_fault(act.gen))
            case AbortLlm():
                _cancel(self._model)
            case ScheduleRetry():
                self._retry = asyncio.get_running_loop().call_later(
                    act.seconds, session.post, lambda: RetryDue(act.gen)
                )
                session.publisher.publish(RetryScheduled(act.attempt, act.seconds, act.cause))
            case CancelTimer():
                _stop(self._retry)
            case Compact():
                self._model = self._spawn(compact(session, act), lambda: self._report_compaction_fault(act))
            case RouteRequest():
                self._model = self._spawn(route(session, act), lambda: self._report_routing_fault(act.gen))
            case _:
                assert_never(act)

    def _start_tool(self, act: ToolAct) -> None:
        session = self.session
        match act:
            case ExecTool():
                facts = self.calls.setdefault(act.call.id, CallFacts())
                self._tool = self._spawn(run_tool(session, act, facts), lambda: self._report_tool_fault(act))
            case KillTool():
                self._others.add(self._spawn(self._kill(act), None))
            case StartCancelDeadline():
                asyncio.get_running_loop().call_later(act.seconds, self._answer_for_slow_call, act.gen)
            case AskApproval():
                session.questions.open = session.questions.drafted
                session.publisher.publish(ApprovalAsked(session.questions.open))
                if session.ports.hooks:
                    words = f"Phoenix needs your permission to use {tool_label(act.call.name)}"
                    notify(session, "permission_prompt", words)
            case _:
                assert_never(act)

    def interrupt(self) -> None:
        """Esc was pressed: close the connection and kill the tool now; the machine follows at once."""
        _cancel(self._model)
        _cancel(self._tool)
        if self.session.ports.hooks:
            stop_hooks(self.session)

    def cancel(self, by: StopCause = StopCause.USER) -> None:
        """Stop the run: its connection and its processes at once, the rest as the machine decides."""
        session = self.session
        session.ports.store.waits.give_up()  # otherwise nothing could be reported before the database is free
        self.interrupt()
        if session.equipment.sub_agents is not None:
            session.equipment.sub_agents.stop_all(session.record.id, by)
        message_id = session.ports.ids.new()
        elapsed = int(session.ports.clock.monotonic() - session.run.started) if session.run.started else 0
        stopped = InboxEntry(lambda: UserCancelled(message_id, elapsed, by), writes=_suppress_wakes(session))
        session.moves.inbox.put(Priority.CANCEL, stopped)

    def background(self) -> JobInfo | None:
        """Turn the running command into a job: its call then ends by itself. None where none runs."""
        state, task = self.session.state, self._tool
        if not isinstance(state, ToolExecuting) or task is None or task.done() or task.cancelling():
            return None
        call_id = state.round.current.id
        job = self.session.ports.jobs.background(self.session.record.id, call_id)
        if job is not None:
            self.calls[call_id].job = job.id
        return job

    def run_started(self, caps: RunCaps) -> None:
        """A run begins: its clock, and its time limit if it has one."""
        session = self.session
        self.calls.clear()
        stop_idle_timer(session)
        session.questions.rewritten.clear()
        session.run = RunFacts(session.ports.clock.monotonic(), caps)
        if session.ports.hooks and session.record.agent is not None:
            tell_agent_started(session)
        session.moves.limit.begin(caps.timeout, session.moves.inbox, InboxEntry(self._end_by_time))

    def forget_run(self) -> None:
        """The run is over: no limit, no retry of it may fire."""
        self.session.moves.limit.end()
        _stop(self._retry)

    def measure_elapsed(self, call_id: str) -> float:
        """Seconds a call has run, 0 before it starts."""
        facts = self.calls.get(call_id)
        return self.session.ports.clock.monotonic() - facts.started if facts and facts.started else 0.0

    def running(self) -> RunningCall | None:
        """The current call, for subscribers that join in the middle of it."""
        state = self.session.state
        if not isinstance(state, ToolExecuting):
            return None
        call_id = state.round.current.id
        facts = self.calls.get(call_id)
        if facts is None or not facts.started:
            return None
        return RunningCall(call_id, facts.started, facts.tail, facts.wants_screen)

    def count_ended(self, call_id: str) -> int:
        """Processes that ended with a stopped call."""
        facts = self.calls.get(call_id)
        return facts.ended if facts else 0

    def stop_all(self) -> None:
        """Cancel everything without telling the machine."""
        self.interrupt()
        self.forget_run()
        for task in self._others:
            task.cancel()

    async def close(self) -> None:
        """Cancel everything and wait until it is gone."""
        self.stop_all()
        running = [task for task in (self._model, self._tool, *self._others) if task is not None]
        await asyncio.gather(*running, return_exceptions=True)

    async def _kill(self, act: KillTool) -> None:
        task, facts = self._tool, self.calls.get(act.call_id, CallFacts())
        _cancel(task)
        if task is not None:
            await asyncio.wait((task,))
        message_id, elapsed = self.session.ports.ids.new(), self.measure_elapsed(act.call_id)
        output, writes = collect_stopped_output(self.session, facts.so_far, elapsed, facts.ended, facts.survivors)

        def build_end() -> ToolAborted | StragglersEnded:
            if self.session.state.gen == act.gen:
                return ToolAborted(
                    act.gen, act.call_id, message_id, facts.ended, facts.survivors, facts.job, output, facts.named
                )
            return StragglersEnded(facts.ended, facts.survivors)

        self.session.post(build_end, writes)

    def _answer_for_slow_call(self, gen: int) -> None:
        """Answer for a call that dies slowly; nothing once it has."""
        session, state = self.session, self.session.state
        if state.gen != gen or not isinstance(state, Cancelling):
            return
        call_id, message_id = state.round.current.id, session.ports.ids.new()
        so_far = self.calls.get(call_id, CallFacts()).so_far
        output, writes = collect_stopped_output(session, so_far, self.measure_elapsed(call_id))
        session.post(lambda: CancelDeadlinePassed(gen, message_id, output), writes)

    def _spawn(self, work: Coroutine[None, None, None], broken: Callable[[], None] | None) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)

        def build_end(done: asyncio.Task[None]) -> None:
            self._others.discard(done)
            error = None if done.cancelled() else done.exception()
            if error is not None:
                log.error("an effect failed", exc_info=error)
                if broken is not None:
                    broken()

        task.add_done_callback(build_end)
        return task

    def _end_by_time(self) -> UserCancelled:
        session = self.session
        written = session.model_use.calls.written
        self.interrupt()
        elapsed = int(session.ports.clock.monotonic() - session.run.started)
        return UserCancelled(session.ports.ids.new(), elapsed, StopCause.TIME_LIMIT, written)

    def _report_model_fault(self, gen: int) -> None:
        message_id = self.session.ports.ids.new()
        failed = LlmFailed(gen, "internal", f"{FAILED_INSIDE}.", retryable=False, message_id=message_id)
        self.session.post(lambda: failed)

    def _report_compaction_fault(self, act: Compact) -> None:
        facts = describe_failure(self.session, cause_of(act), f"{FAILED_INSIDE}.")
        self.session.post(lambda: CompactionEnded(act.gen, facts))

    def _report_routing_fault(self, gen: int) -> None:
        message_id = self.session.ports.ids.new()
        self.session.post(lambda: RouteDecided(gen, message_id, note=f"Routing: {FAILED_INSIDE}"))

    def _report_tool_fault(self, act: ExecTool) -> None:
        result = ToolResult(act.call.id, f"{act.call.name}: {FAILED_INSIDE}.", ToolStatus.ERROR)
        message_id = self.session.ports.ids.new()
        self.session.post(lambda: ToolFinished(act.gen, result, message_id))


def _cancel(task: asyncio.Task[None] | None) -> None:
    """Cancel once: a second time would cut short the killing that the first one began, and lose its count."""
    if task is not None and not task.cancelling():
        task.cancel()


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def _suppress_wakes(session: Session) -> tuple[Write, ...]:
    """Writes for a stop by the user: later results of its sub-agents begin no turn."""
    has_any = session.equipment.sub_agents is not None and session.equipment.sub_agents.views(session.record.id)
    return (SuppressWakes(),) if has_any else ()


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
        self._leave = self._session.ports.jobs.watch(self._follow_jobs)

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
        await self._session.background.finish()
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _follow_jobs(self, conversation_id: str) -> None:
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
