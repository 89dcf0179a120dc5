"""One tool call: parse its arguments, ask the policy, run it, answer with its result. Nothing raises out."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from engine.codec import encode_display
from engine.executor.approving import limits_of, place_of
from engine.executor.call_hooks import CODE as TOOL_DEFERRED
from engine.executor.call_hooks import (
    CallOpinion,
    ask_after_call,
    ask_before_call,
    ask_on_question,
    context_of,
    defer_call,
    describe_stop,
    is_deferred,
    subject_of,
)
from engine.executor.call_questions import CallHosts, select_granted_hosts, settle_changes, settle_stopped
from engine.executor.call_results import begin_check, read_before, with_checks, with_folder_instructions
from engine.executor.equipment import build_web_model, extension_folders
from engine.executor.event_hooks import drop_repeated_reason, ensure_hooks, wants_hooks
from engine.executor.guarding import inspect_result
from engine.executor.ready_calls import (
    ReadyCall,
    answer_repeated_load,
    apply_rewrite,
    begin_load,
    decide_call,
    is_typed,
    prepare,
    rewrite,
    start_agent,
)
from engine.executor.session import Session
from engine.executor.session_parts import AskedCall
from engine.executor.todo_lists import take_list
from engine.machine.agent_texts import heading_of
from engine.machine.effects import ExecTool
from engine.machine.events import AgentsStarted, ApprovalNeeded, ToolFinished
from engine.machine.messages import ImageBlock, ToolCall, ToolResult, ToolStatus
from engine.machine.states import AgentTask, ToolExecuting, round_of, run_of
from engine.permissions.command_rules import only_reads
from engine.permissions.hosts import NET
from engine.permissions.policy import Allow, Ask, Decision, Deny, Limits
from engine.permissions.rules import Rule, suggest
from engine.ports import StorageError
from engine.ports.extensions import HookEvent
from engine.records import ConversationRecord
from engine.updates import Question, ToolProgressed, ToolStarted
from tools.contract import (
    Foreseeing,
    OutputChunk,
    OutputSoFar,
    ProcessesEnded,
    ProcessStarted,
    ProgramEnded,
    Progress,
    Report,
    SandboxMode,
    Tool,
    ToolClass,
    ToolContext,
    ToolInputError,
    ToolOutput,
    ToolRequest,
)
from tools.terminal.values import ShellTerminal, TerminalModes, TerminalRows, TerminalSize

if TYPE_CHECKING:
    from tools.process.command_terminal import CommandTerminal, TerminalLoan


class UserTerminal:
    """Terminal of the user's own shell lines."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def folder(self) -> str:
        """Folder of the next line, where it is not the conversation's; else empty."""
        shell = self._session.equipment.shell
        return shell.folder if shell is not None else ""

    @property
    def modes(self) -> TerminalModes | None:
        """Modes that the running line has set; None while none runs in a terminal."""
        running = self._running
        return running.modes if running is not None else None

    @property
    def wants_screen(self) -> bool:
        """True while the program of the running line uses the alternate screen, for which it needs a whole terminal."""
        running = self._running
        return running is not None and running.wants_screen

    def lend(self, size: TerminalSize) -> TerminalLoan | None:
        """Lend the running line the user's own terminal, which has this size; None where none runs."""
        running = self._running
        return running.lend(size) if running is not None else None

    def fit(self, size: TerminalSize) -> None:
        """Run lines, the running one included, in a terminal of this size; before the first call they have none."""
        self._session.equipment.shell = ShellTerminal(size, self.folder)
        if (running := self._running) is not None:
            running.resize(size)

    def type(self, keys: bytes) -> None:
        """Type into the running line."""
        if (running := self._running) is not None:
            running.type(keys)

    @property
    def _running(self) -> CommandTerminal | None:
        state = self._session.state
        if not isinstance(state, ToolExecuting) or not is_typed(self._session):
            return None
        return self._session.ports.jobs.terminal(self._session.record.id, state.round.current.id)


log = logging.getLogger(__name__)

TAIL = 4096
"""Characters of a running call's newest output for a late subscriber."""


class CallFacts(Struct, eq=False):
    """Events of a call while it ran."""

    started: float = 0.0
    """Monotonic; 0 while it has not begun."""
    announced: bool = False
    tail: str = ""
    """The newest output while it runs."""
    wants_screen: bool = False
    """True while a line of the user needs the whole terminal."""
    ended: int = 0
    survivors: tuple[int, ...] = ()
    named: tuple[str, ...] = ()
    so_far: OutputSoFar | None = None
    """Output of its command as it was stopped."""
    job: str = ""
    """The background job that its command has become."""
    opinion: CallOpinion | None = None
    """Opinion of hooks before it ran; None where none was asked."""
    original: str | None = None
    """Beginning of the file that it edits, as it was before, for hooks."""
    rows: list[str] = field(default_factory=list[str])
    """Rows about hooks, for the note below it."""
    stop_reason: str = ""
    """Sentence about a hook that stops the run behind it."""
    stop_code: str = "hook_stopped"


async def run_tool(session: Session, act: ExecTool, facts: CallFacts) -> None:
    """Perform one ExecTool; cancelling ends the tool and answers nothing."""
    act = replace(act, call=apply_rewrite(session, act.call))
    await ensure_hooks(session)
    try:
        ready = await prepare(session, act.call)
    except ToolInputError as error:
        _announce(session, act.call, None, facts)
        _finish(session, act, ToolOutput(f"{act.call.name}: {error}", is_error=True), None, facts)
        return
    _announce(session, act.call, ready.request, facts)
    try:
        act, ready = await _ask_hooks_before(session, act, ready, facts)
        limits = await limits_of(session)
        decision = decide_call(session, act, ready, limits, facts.opinion)
        if facts.opinion is not None and is_deferred(session, facts.opinion):
            decision, facts.stop_reason = defer_call(act.call.name, facts.opinion)
            facts.stop_code = TOOL_DEFERRED
        decision = await _watch_outside(session, act, ready, limits, decision)
        if isinstance(decision, Ask) and not act.approved:
            act, ready, decision = await _ask_hooks_to_answer(session, act, ready, limits, facts, decision)
    except ToolInputError as error:
        _finish(session, act, ToolOutput(f"{act.call.name}: {error}", is_error=True), None, facts)
        return
    match decision:
        case Allow():
            if (loaded := await answer_repeated_load(session, ready.request)) is not None:
                await _store_images(session, act, ready.tool, loaded, facts)
                return
            await _look_before(session, ready, decision)
            facts.original = await read_before(session, ready)
            facts.started = session.ports.clock.monotonic()
            begun = await begin_check(session, ready.tool.spec, ready.request)
            output = await _run(session, act.call, ready, decision, facts)
            output = await settle_changes(session, ready.request.summary, output)
            output = await with_checks(session, begun, output, facts.rows)
            output = await with_folder_instructions(session, ready.tool.spec, ready.request, output)
            output = await _ask_hooks_after(session, act.call, ready, output, facts)
            if output.agents:
                agents = tuple(AgentTask(agent.id, agent.task) for agent in output.agents)
                session.run.agent_calls[act.call.id] = facts.started
                session.post(lambda: AgentsStarted(act.gen, act.call.id, agents))
            else:
                await _store_images(session, act, ready.tool, output, facts)
        case Ask():
            await _ask(session, act, ready, limits, decision, facts)
        case Deny(text):
            _finish(session, act, ToolOutput(text, is_error=True), None, facts)
        case _:
            assert_never(decision)


async def _watch_outside(
    session: Session, act: ExecTool, ready: ReadyCall, limits: Limits, decision: Decision
) -> Decision:
    """The decision about a command that leaves the sandbox, which asks where it is not known what others left there."""
    leaves = isinstance(decision, Allow) and decision.sandbox.mode is SandboxMode.OFF and limits.confines
    if not leaves or ready.tool.spec.tool_class is not ToolClass.RUN:
        return decision
    trouble = await session.ports.probe.trouble(session.record.cwd)
    if not trouble or not isinstance(decision, Allow):
        return decision
    decision = replace(decision, sandbox=replace(decision.sandbox, unseen=True))
    if act.approved or is_typed(session):
        return decision
    return Ask(f"{trouble}, and git outside the sandbox could start programs of theirs", decision, lasting=False)


async def _ask_hooks_before(
    session: Session, act: ExecTool, ready: ReadyCall, facts: CallFacts
) -> tuple[ExecTool, ReadyCall]:
    """The call as hooks leave it. They are asked once about an input, also where it is approved later, and not about a
    command line of the user.

    Raises:
        ToolInputError: a hook changed the input into an invalid one.
    """
    known = facts.opinion is not None and facts.opinion.call == act.call
    if known or is_typed(session) or not wants_hooks(session, HookEvent.PRE_TOOL_USE):
        return act, ready
    subject = subject_of(session, ready.tool.spec, ready.args, ready.request)
    facts.opinion = await ask_before_call(session, act.call, subject)
    facts.rows += facts.opinion.rows
    facts.stop_reason = describe_stop(facts.opinion.verdict)
    return await _apply_opinion(session, act, ready, facts)


async def _apply_opinion(
    session: Session, act: ExecTool, ready: ReadyCall, facts: CallFacts
) -> tuple[ExecTool, ReadyCall]:
    """The call with the input that hooks gave it, prepared again."""
    opinion = facts.opinion
    if opinion is None or opinion.call == act.call:
        return act, ready
    act = replace(act, call=opinion.call)
    ready = await prepare(session, act.call)
    rewrite(session, act.call, ready.args)
    facts.announced = False
    _announce(session, act.call, ready.request, facts)
    return act, ready


async def _ask_hooks_to_answer(
    session: Session, act: ExecTool, ready: ReadyCall, limits: Limits, facts: CallFacts, asks: Ask
) -> tuple[ExecTool, ReadyCall, Decision]:
    """The decision once hooks were asked to answer in place of the user.

    Raises:
        ToolInputError: a hook changed the input into an invalid one.
    """
    subject = subject_of(session, ready.tool.spec, ready.args, ready.request)
    opinion = await ask_on_question(session, act.call, subject)
    if opinion is None:
        return act, ready, asks
    before = facts.opinion.verdict.context if facts.opinion is not None else ()
    facts.opinion = replace(opinion, verdict=replace(opinion.verdict, context=before + opinion.verdict.context))
    facts.rows += opinion.rows
    facts.stop_reason = describe_stop(opinion.verdict)
    act, ready = await _apply_opinion(session, act, ready, facts)
    return act, ready, decide_call(session, act, ready, limits, opinion)


async def _ask_hooks_after(
    session: Session, call: ToolCall, ready: ReadyCall, output: ToolOutput, facts: CallFacts
) -> ToolOutput:
    """The result with what hooks add to it; of sub-agents that were started they hear once those have ended."""
    if output.agents or is_typed(session):
        return output
    if facts.opinion is not None:
        output = replace(output, text=f"{output.text}{context_of(facts.opinion)}")
    if not session.ports.hooks:
        return output
    subject = subject_of(session, ready.tool.spec, ready.args, ready.request)
    seconds = session.ports.clock.monotonic() - facts.started
    output, verdict, rows = await ask_after_call(session, call, subject, output, seconds, facts.original)
    facts.rows += rows
    facts.stop_reason = facts.stop_reason or describe_stop(verdict)
    return output


async def _look_before(session: Session, ready: ReadyCall, grant: Allow) -> None:
    """Keep the present files before a tool that may change them, so that they can be restored."""
    if session.rewinding is None:
        return
    recorder = session.rewinding.recorder
    match ready.tool.spec.tool_class:
        case ToolClass.EDIT:
            await recorder.before_edit(session.record, ready.request.paths)
        case ToolClass.READ if ready.request.lines:
            await recorder.before_command(session.record)
        case ToolClass.RUN if grant.sandbox.mode is SandboxMode.READ_ONLY or only_reads(ready.request.command):
            return
        case ToolClass.RUN | ToolClass.SPAWN:
            await recorder.before_command(session.record)
        case ToolClass.READ | ToolClass.NET:
            return
        case _ as never:
            assert_never(never)


def _announce(session: Session, call: ToolCall, request: ToolRequest | None, facts: CallFacts) -> None:
    if not facts.announced:
        facts.announced = True
        session.publisher.publish(ToolStarted(call, request))


async def _run(session: Session, call: ToolCall, ready: ReadyCall, grant: Allow, facts: CallFacts) -> ToolOutput:
    def report(progress: Progress) -> None:
        _note_progress(session, call, facts, progress)
        if not isinstance(progress, OutputSoFar):
            session.publisher.publish(ToolProgressed(call.id, progress))

    gate = CallHosts(session, call, ready.request, select_granted_hosts(grant.sandbox.hosts or ()), facts.rows)
    try:
        context = _build_context(session, call, ready, grant, report, gate)
        if ready.request.loads:
            context = replace(context, line_sandboxes=await begin_load(session, ready.request))
            return await start_agent(session, await ready.tool.run(ready.args, context), context)
        return await ready.tool.run(ready.args, context)
    except ToolInputError as error:
        return ToolOutput(f"{call.name}: {error}", is_error=True)
    except asyncio.CancelledError:
        if facts.so_far is not None:
            facts.so_far = await settle_stopped(session, facts.so_far)
        raise
    except Exception as error:  # one of the two places where a fault of a tool becomes an error result
        log.exception("tool %s failed", call.name)
        return ToolOutput(f"{call.name} failed: {type(error).__name__}: {error}", is_error=True)
    finally:
        gate.close()


def _note_progress(session: Session, call: ToolCall, facts: CallFacts, progress: Progress) -> None:
    """Keep what a late subscriber and a stop need of a running call."""
    match progress:
        case OutputChunk(text=text):
            facts.tail = (facts.tail + text)[-TAIL:]
        case TerminalRows(text=text):
            facts.tail, facts.wants_screen = text[-TAIL:], progress.wants_screen
        case ProcessStarted(pid, started):
            session.background.start(session.ports.store.note_process(session.record.id, call.id, pid, started))
        case ProcessesEnded(count, survivors, named):
            facts.ended, facts.survivors, facts.named = count, survivors, named
        case OutputSoFar():
            facts.so_far = progress
        case ProgramEnded():
            pass
        case _:
            assert_never(progress)


def _build_context(
    session: Session, call: ToolCall, ready: ReadyCall, grant: Allow, report: Report, gate: CallHosts
) -> ToolContext:
    request, is_file = ready.request, ready.tool.spec.tool_class in {ToolClass.READ, ToolClass.EDIT}
    return ToolContext(
        session.record.id,
        call.id,
        session.record.cwd,
        grant.outside,
        report,
        name_actor(session.record),
        grant.sandbox,
        admitted=request.paths if is_file else None,
        kept_out=(*place_of(session).list_passed_over(request), *grant.sandbox.unreadable) if is_file else (),
        readable=extension_folders(session) if ready.tool.spec.tool_class is ToolClass.READ else (),
        web=build_web_model(session) if ready.tool.spec.tool_class is ToolClass.NET else None,
        shell=session.equipment.shell if is_typed(session) else None,
        gate=gate,
    )


def name_actor(record: ConversationRecord) -> str:
    """Author of a file as other conversations see it."""
    if record.agent is not None:
        return f"sub-agent '{heading_of(record.agent.task)}' ({record.id})"
    return f"conversation '{record.title}' ({record.id})" if record.title else ""


async def _store_images(session: Session, act: ExecTool, tool: Tool, output: ToolOutput, facts: CallFacts) -> None:
    blocks: list[ImageBlock] = []
    try:
        for image in output.images:
            stored = await session.ports.store.add_attachment(session.record.id, image, session.ports.clock.now())
            blocks.append(ImageBlock(stored.id, stored.width, stored.height))
    except StorageError as error:
        output = ToolOutput(f"{act.call.name}: the image could not be stored. {error}", is_error=True)
    _finish(session, act, output, tool.spec.tool_class, facts, tuple(blocks))


async def _ask(session: Session, act: ExecTool, ready: ReadyCall, limits: Limits, asks: Ask, facts: CallFacts) -> None:
    """Ask the user, unless the tool foresees that a yes would be for nothing."""
    record, tool = session.record, ready.tool
    if isinstance(tool, Foreseeing):
        context = ToolContext(record.id, act.call.id, record.cwd, outside_allowed=True, report=lambda _: None)
        try:
            await tool.foresee(ready.args, context)
        except ToolInputError as error:
            _finish(session, act, ToolOutput(f"{act.call.name}: {error}", is_error=True), None, facts)
            return
    rule, reason = suggest(tool.spec, ready.request, record.cwd) if asks.lasting else None, asks.reason
    if asks.hosts:
        rule = Rule(NET, ", ".join(asks.hosts))
    times = session.questions.asked.times + 1 if act.approved and session.questions.asked is not None else 1
    session.questions.asked = AskedCall(act.call.id, ready.request, limits, times)
    session.questions.drafted = Question(
        act.call,
        ready.request,
        reason,
        str(rule or ""),
        session.asker,
        tool.spec.tool_class,
        session.ports.clock.monotonic(),
        by_hook=asks.by_hook,
    )
    session.post(lambda: ApprovalNeeded(act.gen, act.call.id, reason))


def _finish(
    session: Session,
    act: ExecTool,
    output: ToolOutput,
    kind: ToolClass | None,
    facts: CallFacts,
    images: tuple[ImageBlock, ...] = (),
) -> None:
    """Answer with the result of a call; `kind` is None for one that was never run."""
    status = ToolStatus.ERROR if output.is_error else ToolStatus.SUCCESS
    display = encode_display(output.display) if output.display is not None else ""
    run, round_ = run_of(session.state), round_of(session.state)
    verdict = session.run.loop_guard.judge(
        act.call,
        kind,
        output.text,
        failed=output.is_error,
        reply=run.iteration if run is not None else 0,
        left=len(round_.queue) if round_ is not None else 0,
    )
    result = ToolResult(act.call.id, output.text, status, images, display, output.truncated)
    result, note, writes = inspect_result(session, act.call, result)
    result = replace(result, text=result.text + verdict.warning)
    note = "\n".join(filter(None, (note, *(drop_repeated_reason(row, output.text) for row in facts.rows))))
    stops, reason, code = verdict.stops or bool(facts.stop_reason), facts.stop_reason, facts.stop_code
    message_id, items = session.ports.ids.new(), output.todos

    if output.folder is not None and session.equipment.shell is not None and is_typed(session):
        session.equipment.shell = ShellTerminal(session.equipment.shell.size, output.folder)

    def build() -> ToolFinished:
        """The event, with the todo list as it is in this very move."""
        settled, todos = take_list(session, result, items) if items is not None else (result, None)
        return ToolFinished(
            act.gen, settled, message_id, stop_run=stops, note=note, todos=todos, stop_reason=reason, stop_code=code
        )

    session.post(build, writes)
