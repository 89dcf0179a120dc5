"""`phoenix -p`: one run without a screen, from prompt to exit code (CONTRACT 2 and 3)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from engine.agents.manager import SubAgents
from engine.conversation import Conversation
from engine.engine import Engine
from engine.executor.requests import ApprovalAnswer, ApprovalChoice, PlanChoice, Receipt, Refused, RunCaps
from engine.machine.messages import TextBlock
from engine.machine.states import StopCause, is_busy
from engine.ports.extensions import ExtensionPrompt
from engine.records import ConversationRecord, PermissionMode
from engine.updates import ApprovalAsked, CallEnded, Question, RunEnded, Update
from phoenix_tui.cli.exits import CommandError, Exit
from phoenix_tui.cli.outcome import RunOutcome
from phoenix_tui.cli.output import behind_the_loop, write_progress
from phoenix_tui.cli.reporters import Reporter
from phoenix_tui.features.composing import SECRET
from phoenix_tui.lifecycle.stop_signals import listen
from phoenix_tui.lifecycle.watchdogs import NO_LIMIT, LoopWatch, MemoryLimit
from phoenix_tui.text.agent_text import count_agents, task_words
from tools.contract import ImageRejected, JsonObject, SandboxMode, Tool, ToolClass
from tools.files.links import real_path
from tools.files.own_files import read_given
from tools.files.protected import is_secret
from tools.process.link import ZygoteLink
from tools.submit_structured import LARGEST, NAME, REMINDER, SchemaError, SubmitStructured, usable_schema


class StructuredAnswer:
    """A source of the one tool, and the state of the answer in this turn."""

    def __init__(self, text: str | None) -> None:
        """Raise CommandError where `text` is no schema that can be checked; None: no answer of a shape is wanted."""
        self._tool = SubmitStructured(schema_of(text)) if text is not None else None
        self._reminded = False

    @property
    def is_wanted(self) -> bool:
        """True where there is a schema."""
        return self._tool is not None

    def use(self, schema: JsonObject) -> None:
        """Want an answer of this schema, which `usable_schema` gave."""
        self._tool = SubmitStructured(schema)

    def tools(self, record: ConversationRecord) -> Mapping[str, Tool]:
        """The tool, for the conversation itself and not for sub-agents."""
        return {NAME: self._tool} if self._tool is not None and record.agent is None else {}

    def prompts(self, record: ConversationRecord) -> Sequence[ExtensionPrompt]:
        """A sentence about the last act of a run."""
        if self._tool is None or record.agent is not None:
            return ()
        return (
            ExtensionPrompt("Final answer", f"When the work is done, call {NAME} with the answer.", "--json-schema"),
        )

    async def prepare(self, record: ConversationRecord) -> None:
        """Return at once."""

    def close_conversation(self, conversation_id: str) -> None:
        """Do nothing: nothing is held for it."""

    def begin(self) -> None:
        """A turn begins: there is no answer yet."""
        self._reminded = False
        if self._tool is not None:
            self._tool.answer = None

    def reminder(self) -> str:
        """The next message for a run that ended without an answer: once in a turn, empty otherwise."""
        if self._tool is None or self._tool.answer is not None or self._reminded:
            return ""
        self._reminded = True
        return REMINDER

    def settle(self, outcome: RunOutcome) -> None:
        """Put the answer into the outcome of the run."""
        outcome.structured = self._tool.answer if self._tool is not None else None


def schema_of(text: str) -> JsonObject:
    """The schema of `--json-schema`, which is JSON or the path of a file with it.

    Raises:
        CommandError: it cannot be read, or is no schema that can be checked.
    """
    try:
        content = text if text.lstrip().startswith("{") else Path(text).read_text("utf-8-sig")
        if len(content) > LARGEST:
            raise CommandError(f"The schema of --json-schema is longer than {LARGEST:,} characters.")
        return usable_schema(json.loads(content))
    except SchemaError as error:
        raise CommandError(f"--json-schema: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CommandError(f"--json-schema needs a JSON schema, or a file with one: {reason}.") from error


NOBODY_ASKED = "this run cannot ask; use --permission-mode accept-edits or auto"
NOBODY_ASKED_IN_SANDBOX = (
    "this run cannot ask; --permission-mode auto runs commands in the sandbox, --sandbox off without it"
)
NOBODY_ASKED_TO_LEAVE = "this run cannot ask; --sandbox off lets calls leave the sandbox"
ONLY_A_PERSON = "this run cannot ask, and no mode allows this without asking"
ASKED_BY_HOOK = "this run cannot ask, and a hook wants a yes: {reason}"
STOPPING = 2.0
"""Seconds a stopped run gets to end properly."""
LAST_WORDS = 0.5
"""Seconds a reader gets for the result of a run that a signal stopped."""
SIGNALS = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.TERMINATED}


ImageFiles: TypeAlias = Sequence[tuple[Path, bytes]]
"""Images of a message, each with the file that it was read from."""


@dataclass(slots=True)
class HeadlessRun:
    """One message and everything up to the end of its run, and of the sub-agents it began."""

    engine: Engine
    conversation: Conversation
    reporter: Reporter
    outcome: RunOutcome
    waits_for_agents: bool = True
    """True when background sub-agents are waited for."""
    link: ZygoteLink | None = None
    """Link to the zygote, which sees signals that the loop does not handle; None without one."""
    limit: MemoryLimit = NO_LIMIT
    """Limit of this process's memory."""
    structured: StructuredAnswer | None = None
    """The answer of `--json-schema`; None without that flag."""
    attached: Sequence[TextBlock] = ()
    """Texts behind the words of the message."""
    _caps: RunCaps = field(default_factory=RunCaps)
    _watch: LoopWatch | None = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _runs: int = 0
    """Runs that have ended."""
    _waiting: asyncio.Task[None] | None = None
    """Task that waits for background work."""
    _reading: asyncio.Future[None] | None = None
    """Future that completes when the output was read."""
    _answers: set[asyncio.Task[Receipt]] = field(default_factory=set["asyncio.Task[Receipt]"])

    async def perform(self, prompt: str, images: ImageFiles, caps: RunCaps) -> Exit:
        """Send `prompt`, follow the run, print the result.

        Raises:
            CommandError: an image is unusable; nothing was sent.
            BrokenPipeError: the reader of stdout has gone; the run is stopped.
        """
        try:
            image_ids = [(await self.conversation.attach(image, path)).id for path, image in images]
        except ImageRejected as error:
            raise CommandError(str(error)) from error
        loop = asyncio.get_running_loop()
        lost = partial(loop.call_soon_threadsafe, self._stdout_lost)
        with self._signals(), behind_the_loop(lost) as written:
            await self._run(prompt, image_ids, caps)
            self.reporter.end(self.outcome)
            await self._wait_for_reader(written)
        return self.outcome.exit_code

    async def _run(self, prompt: str, image_ids: list[str], caps: RunCaps) -> None:
        started, self._caps = monotonic(), caps
        self.reporter.begin()
        leave_agents = self.engine.follow_agents(self._follow_agent)
        unsubscribe = await self.conversation.subscribe(self._follow)
        self.conversation.agents.wake_caps = lambda: self._subtract_spent(caps)
        try:
            answer = await self.conversation.say(prompt, image_ids, caps, self.attached)
            if isinstance(answer, Refused):
                self.outcome.refused = answer
            else:
                await self._over.wait()
                await self._remind(caps)
                await self._wait_for_background(started + caps.timeout if caps.timeout else None)
                self.outcome.settle(await self.conversation.wait_idle())
        finally:
            unsubscribe()
            leave_agents()
            await self._stop()
        self.outcome.duration_ms = round((monotonic() - started) * 1000)

    async def _remind(self, caps: RunCaps) -> None:
        """Ask once more for a structured answer that was not handed in, with what is left of the limits."""
        if self.structured is None or self.outcome.exit_code is not Exit.OK or self.outcome.deferred is not None:
            return
        self.outcome.settle(await self.conversation.wait_idle())
        reminder, left = self.structured.reminder(), self._subtract_spent(caps)
        if reminder and left is not None:
            self._over.clear()
            if not isinstance(await self.conversation.say(reminder, (), left), Refused):
                await self._over.wait()
        self.structured.settle(self.outcome)

    async def _wait_for_reader(self, written: Callable[[], Awaitable[None]]) -> None:
        """Wait until the result is read; a signal ends that, the result is stored."""
        self._reading = asyncio.ensure_future(written())
        if self.outcome.stopped_by is not None:
            asyncio.get_running_loop().call_later(LAST_WORDS, self._reading.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def _wait_for_background(self, deadline: float | None) -> None:
        """Wait for sub-agents in the background and the turns they wake, until `deadline`; then end the rest.

        Those of a run that did not end well are not waited for.
        """
        sub_agents = self.engine.sub_agents
        if sub_agents is None:
            return
        more = sub_agents.needs(self.conversation.id) or is_busy(self.conversation.state)
        if more and self.waits_for_agents and self.outcome.exit_code is Exit.OK:
            self._waiting = asyncio.ensure_future(self._at_rest(sub_agents))
            await asyncio.wait((self._waiting,), timeout=deadline and max(0.0, deadline - monotonic()))
            if not self._waiting.done():
                self.outcome.capped = "timeout"
        await self._end_agents(sub_agents)

    def _subtract_spent(self, caps: RunCaps) -> RunCaps | None:
        """Remaining limits for a turn that a sub-agent wakes; None where a limit is used up. Time is kept here."""
        turns = caps.max_turns - self.outcome.turns
        budget = caps.max_budget_usd - (self.outcome.cost or 0.0)
        if caps.max_turns and turns <= 0:
            self.outcome.capped = "iteration_limit"
        elif caps.max_budget_usd and budget <= 0:
            self.outcome.capped = "budget"
        else:
            return RunCaps(turns if caps.max_turns else 0, budget if caps.max_budget_usd else 0.0)
        return None

    async def _at_rest(self, sub_agents: SubAgents) -> None:
        seen = 0
        while seen != self._runs:
            seen = self._runs
            await sub_agents.wait_finished(self.conversation.id)
            await self.conversation.wait_idle()

    async def _end_agents(self, sub_agents: SubAgents) -> None:
        left = [view.task for view in sub_agents.views(self.conversation.id) if view.outcome is None]
        if not sub_agents.at_work(self.conversation.id):
            return
        stopped = f"{count_agents(len(left))} stopped with the run: {'; '.join(task_words(task) for task in left)}"
        write_progress(f"phoenix: {stopped}")
        self.conversation.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(sub_agents.wait_finished(self.conversation.id), STOPPING)

    def _follow(self, update: Update) -> None:
        self.outcome.follow(update)
        self._check_price(update)
        match update:
            case ApprovalAsked(question) if question is not None:
                self._deny(self.conversation, question)
            case RunEnded():
                self._runs += 1
                self._over.set()
            case _:
                pass  # the reporter has it
        self._report(lambda: self.reporter.follow(update))

    def _follow_agent(self, agent: Conversation, update: Update) -> None:
        facts = agent.record.agent
        if facts is None or facts.parent_id != self.conversation.id:
            return
        self.outcome.denials.follow(update, agent.id)
        self.outcome.agents.follow_agent(agent.id, update)
        self._check_price(update)
        if isinstance(update, ApprovalAsked) and update.question is not None:
            self._deny(agent, update.question)
        self._report(lambda: self.reporter.follow_agent(agent.record, facts, update))

    def _check_price(self, update: Update) -> None:
        """Stop when a price that the budget needs turns out to be unknown, since an unattended run cannot keep it
        otherwise.
        """
        if self._caps.max_budget_usd and isinstance(update, CallEnded) and update.call.cost_usd is None:
            self.outcome.capped = "price"
            self.conversation.cancel()

    def _report(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except BrokenPipeError:
            self._interrupt(Exit.FAILED)

    def _stdout_lost(self) -> None:
        if self._reading is None:  # else the wait for the reader says it
            self._interrupt(Exit.FAILED)

    def _deny(self, conversation: Conversation, question: Question) -> None:
        """Say no, for no user can be asked; a plan becomes the result of the run."""
        if question.request.plan:
            given = ApprovalAnswer(ApprovalChoice.ONCE, plan_choice=PlanChoice.DELIVER)
        else:
            reason = explain_denial(conversation.record, question)
            given = ApprovalAnswer(ApprovalChoice.DENY, reason=reason)
        answer = conversation.answer(question.call.id, given)
        task = asyncio.ensure_future(answer)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        listen(loop, SIGNALS, lambda number: self._interrupt(SIGNALS[number]))
        if self.link is not None:
            self.link.arm(SIGNALS)
            self._watch = LoopWatch(self.link, self.limit, lambda words: write_progress(f"phoenix: {words}"))
        try:
            yield
        finally:
            if self.link is not None and self._watch is not None:
                self._watch.stop()
                self.link.disarm()
                if why := self._watch.last_words:
                    write_progress(f"phoenix: {why}")
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _interrupt(self, code: Exit) -> None:
        if self._watch is not None:
            self._watch.end_begins()
        if self.outcome.stopped_by is None:
            self.outcome.stopped_by = code
        if self._reading is not None:
            self._reading.cancel()
        self.conversation.cancel(StopCause.USER if code is Exit.INTERRUPTED else StopCause.ENDING)
        asyncio.get_running_loop().call_later(STOPPING, self._give_up)

    def _give_up(self) -> None:
        """Continue without a run that was stopped and does not end."""
        self._over.set()
        if self._waiting is not None:
            self._waiting.cancel()

    async def _stop(self) -> None:
        """Leave nothing running, whatever went wrong here."""
        if self._over.is_set():
            return
        self.conversation.cancel(StopCause.ENDING)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.conversation.wait_idle(), STOPPING)


def explain_denial(record: ConversationRecord, question: Question) -> str:
    """The reason a model reads for a question that could not be answered, naming the setting that would have allowed
    the call, or the hook that no setting answers.
    """
    if question.by_hook:
        return ASKED_BY_HOOK.format(reason=question.reason)
    confined, tool_class = record.sandbox is not SandboxMode.OFF, question.tool_class
    if record.permission_mode is PermissionMode.AUTO:
        return NOBODY_ASKED_TO_LEAVE if confined else ONLY_A_PERSON
    return NOBODY_ASKED_IN_SANDBOX if confined and tool_class is ToolClass.RUN else NOBODY_ASKED


PATIENCE = 1.0
"""Seconds before a silent stdin is mentioned: a script that left it open would wait without a word."""
IMAGE_LIMIT = 64 * 1024 * 1024
"""Bytes read of one image file; a larger one is no photo."""


def read_prompt(given: str | None, images: int = 0) -> str:
    """PROMPT, piped stdin, or both: the prompt first, then stdin; a default question for images with neither.

    Raises:
        CommandError: there is neither.
    """
    wants_stdin = given is None or given == "-" or _is_piped()
    piped = _read_stdin() if wants_stdin else ""
    spoken = "" if given is None or given == "-" else given
    prompt = "\n\n".join(part for part in (spoken, piped) if part.strip())
    if not prompt and images:
        return "Describe what is in this image." if images == 1 else "Describe what is in these images."
    if not prompt:
        raise CommandError("No prompt was given; write one after -p or pipe it in.")
    return prompt


def read_images(names: tuple[str, ...]) -> list[tuple[Path, bytes]]:
    """The image files with their bytes.

    Raises:
        CommandError: one cannot be read.
    """
    return [(path, _read_image(path)) for path in (Path(name).expanduser().absolute() for name in names)]


def _read_image(path: Path) -> bytes:
    if is_secret(Path(real_path(path)), Path.home()):
        raise CommandError(SECRET.format(path=path))
    try:
        content = read_given(path, IMAGE_LIMIT + 1)
    except OSError as error:
        raise CommandError(f"The image {path} cannot be read: {error.strerror}.") from error
    if len(content) > IMAGE_LIMIT:
        raise CommandError(f"The image {path} is larger than 64 MiB; give a smaller one.")
    return content


def _is_piped() -> bool:
    """True when stdin is a pipe, a file or a socket: a terminal or /dev/null has nothing to add."""
    if sys.stdin is None:
        return False
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _read_stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if not select.select([sys.stdin], [], [], PATIENCE)[0]:
        write_progress("Reading stdin; use `< /dev/null` to skip it.")
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip("\n")
