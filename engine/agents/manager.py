"""The sub-agents of this process: created for a call, resumed, stopped, and listed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from engine.agents.results import AgentBoard, AgentResults, view_of
from engine.agents.scheduler import AgentScheduler, RunningAgent
from engine.context.prompt import snapshot
from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.guarding import check_hint
from engine.executor.requests import EngineError
from engine.executor.session import Ports
from engine.executor.user_requests import log_read_on
from engine.machine.states import AwaitingSubagents, StopCause, run_of
from engine.open_conversations import OpenConversations
from engine.ports import ProviderError, StorageError
from engine.ports.profiles import Profile, ProfileError
from engine.ports.storage import USER
from engine.records import AgentFacts, ConversationRecord, NewConversation, RunPriority, SpawnMode, StoredConversation
from engine.run_options import Effort
from engine.updates import MOST_TASKS, PARALLEL, SEQUENTIAL, AgentView, Publisher, RunEnded, StateChanged, Update
from tools.arguments import Arguments
from tools.contract import JsonObject, StartedAgent, ToolInputError
from tools.wording import one_line

if TYPE_CHECKING:
    from engine.store.agents import AgentStore


MOST_TURNS: Final = 250
LONGEST: Final = 86_400.0
"""Seconds that a sub-agent may be given; a day."""
SHORTEST: Final = 1.0


class TaskRequest(Struct, frozen=True):
    """A task for a sub-agent; 0 means the profile's own limit."""

    task: str
    profile: str = ""
    max_turns: int = 0
    timeout: float = 0.0
    priority: RunPriority = RunPriority.NORMAL
    title: str = ""
    """Title, when the task itself is a longer prompt."""


class SpawnRequest(Struct, frozen=True):
    """A call of spawn_agents."""

    tasks: tuple[TaskRequest, ...]
    sequential: bool = False


class ResumeRequest(Struct, frozen=True):
    """A call of spawn_task that resumes an earlier sub-agent."""

    agent_id: str
    message: str


def read_spawn_request(args: JsonObject) -> SpawnRequest:
    """Read a call of spawn_agents.

    Raises:
        ToolInputError: the arguments are invalid.
    """
    fields = Arguments(args, ("tasks", "strategy"))
    strategy = fields.text("strategy", PARALLEL)
    if strategy not in {PARALLEL, SEQUENTIAL}:
        raise ToolInputError(f"strategy must be {PARALLEL} or {SEQUENTIAL}, not {strategy}.")
    tasks = args.get("tasks")
    if not isinstance(tasks, list) or not 1 <= len(tasks) <= MOST_TASKS:
        count = f"{len(tasks)}" if isinstance(tasks, list) else "none"
        raise ToolInputError(f"tasks must be a list of 1 to {MOST_TASKS} tasks; there are {count}.")
    return SpawnRequest(
        tuple(_read_task(one, f"tasks[{place}].") for place, one in enumerate(tasks)), strategy == SEQUENTIAL
    )


def read_background_request(args: JsonObject) -> TaskRequest | ResumeRequest:
    """Read a call of spawn_task: a new task, or a message to an earlier one.

    Raises:
        ToolInputError: the arguments are invalid.
    """
    known = ("task_description", "initial_prompt", "task_id", "message", "profile", "max_turns", "timeout")
    fields = Arguments(args, known)
    if args.get("task_id") or (args.get("message") and "task_description" not in args):  # empty when it fills a form
        agent_id, message = fields.text("task_id").strip(), fields.text("message").strip()
        if not agent_id or not message:
            raise ToolInputError("To go on with an earlier task give its task_id and a message, neither empty.")
        return ResumeRequest(agent_id, message)
    title, prompt = fields.text("task_description").strip(), fields.text("initial_prompt").strip()
    if not title or not prompt:
        raise ToolInputError("A new task needs task_description (a few words) and initial_prompt, neither empty.")
    return TaskRequest(prompt, *_read_limits(fields), title=title)


def _read_task(one: object, where: str) -> TaskRequest:
    if not isinstance(one, dict):
        raise ToolInputError(f'{where[:-1]} must be an object such as {{"task": "..."}}.')
    known: Sequence[str] = ("task", "profile", "max_turns", "timeout", "priority")
    fields = Arguments(cast("JsonObject", one), known, where)
    task = fields.text("task").strip()
    if not task:
        raise ToolInputError(f"{where}task is empty: say what the sub-agent is to do.")
    priority = fields.text("priority", RunPriority.NORMAL.value)
    if priority not in set(RunPriority):
        raise ToolInputError(f"{where}priority must be one of {', '.join(RunPriority)}, not {priority}.")
    return TaskRequest(task, *_read_limits(fields), RunPriority(priority))


def _read_limits(fields: Arguments) -> tuple[str, int, float]:
    """Profile, turns and seconds."""
    turns = fields.whole("max_turns", 0, 0, MOST_TURNS)
    seconds = fields.number("timeout", 0.0, 0.0, LONGEST)
    if 0.0 < seconds < SHORTEST:
        raise ToolInputError(f"timeout is in seconds and must be at least {SHORTEST:g}.")
    return fields.text("profile", "").strip(), turns, seconds


T = TypeVar("T", int, float)
TITLE = 50
"""Characters (SPEC STM-11)."""


class AgentFactory:
    """Turns requests into conversations, and hands those to the scheduler: all of a call, or none."""

    def __init__(
        self,
        store: AgentStore,
        settings: EngineSettings,
        conversations: OpenConversations,
        scheduler: AgentScheduler,
        results: AgentResults,
        board: AgentBoard,
    ) -> None:
        self._ports = conversations.ports
        self._store = store
        self._settings = settings
        self._conversations = conversations
        self._scheduler = scheduler
        self._results = results
        self._board = board

    async def start_all(
        self,
        parent: Conversation,
        call_id: str,
        tasks: Sequence[TaskRequest],
        mode: SpawnMode,
        *,
        sequential: bool = False,
    ) -> list[RunningAgent]:
        """Make the sub-agents of a call and start them; where the call is cut off meanwhile they end unbegun."""
        making = asyncio.ensure_future(self._open_all(parent, call_id, tasks, mode))
        try:
            all_running = await asyncio.shield(making)
        except asyncio.CancelledError:
            self._results.start(self._give_up(making))
            raise
        if sequential:
            for place, running in enumerate(all_running):
                running.after = tuple(all_running[:place])
        self._scheduler.start(all_running)
        return all_running

    async def _give_up(self, making: asyncio.Future[list[RunningAgent]]) -> None:
        with suppress(ToolInputError, StorageError):  # then there are none
            self._scheduler.dismiss(await making)

    async def _open_all(
        self, parent: Conversation, call_id: str, tasks: Sequence[TaskRequest], mode: SpawnMode
    ) -> list[RunningAgent]:
        records = await self.make(parent.record, call_id, tasks, mode)
        background = mode is SpawnMode.BACKGROUND
        all_running: list[RunningAgent] = []
        try:
            for record in records:
                conversation = await self._conversations.adopt(record)
                row = await self._store.row(record.id)
                assert record.agent is not None, "what was made for a call is a sub-agent"
                all_running.append(self._scheduler.add(conversation, record.agent, parent, background=background))
                if row is not None:
                    self._board.put(parent.id, view_of(row))
        except BaseException:
            self._scheduler.dismiss(all_running)
            raise
        return all_running

    async def make(
        self, parent: ConversationRecord, call_id: str, requests: Sequence[TaskRequest], mode: SpawnMode
    ) -> Sequence[StoredConversation]:
        """The sub-agents of one call, in its order; all or none.

        Raises:
            ToolInputError: a profile is unknown or broken.
            StorageError: they cannot be stored.
        """
        first = max(1, parent.context_start_seq)
        rows = await self._ports.store.messages(parent.id, first_seq=first)

        @cache
        def context(window: int) -> str:
            return snapshot(rows, parent.summary, call_id, window)

        new = [
            self._describe_agent(
                parent, request, AgentFacts(parent.id, mode, call_id, place, request.title or request.task), context
            )
            for place, request in enumerate(requests, 1)
        ]
        return await self._store.create_all(new, self._ports.clock.now())

    def _describe_agent(
        self, parent: ConversationRecord, request: TaskRequest, facts: AgentFacts, context: Callable[[int], str]
    ) -> NewConversation:
        profile, settings = self._resolve_profile(request.profile, parent), self._settings
        model = profile.model or parent.model
        turns, seconds = profile.limits_under(settings.agent_turns, settings.agent_timeout)
        limited = replace(
            facts,
            max_turns=_choose_limit(request.max_turns, turns, narrows=profile.project),
            timeout=_choose_limit(request.timeout, seconds, narrows=profile.project),
            priority=request.priority,
            context=context(self._find_window(model)),
        )
        return NewConversation(
            id=self._ports.ids.new(),
            cwd=parent.cwd,
            model=model,
            title=one_line(facts.task, TITLE),
            permission_mode=profile.mode_under(parent.permission_mode),
            profile=profile.name,
            agent=limited,
            prompt=request.task,
            sandbox=profile.sandbox_under(parent.sandbox),
            sandbox_required=parent.sandbox_required or bool(profile.sandbox),
            effort=Effort(profile.effort) if profile.effort else parent.effort,
        )

    def _find_window(self, model: str) -> int:
        """Context window of a model in tokens, 0 while unknown."""
        try:
            provider, name = self._ports.providers.resolve(model)
        except ProviderError:
            return 0  # the call itself reports it
        return provider.describe(name).context_window

    def _resolve_profile(self, name: str, parent: ConversationRecord) -> Profile:
        if self._ports.profiles is None:
            raise ToolInputError("Sub-agents are not available here.")
        try:
            return self._ports.profiles.resolve(name, parent.cwd)
        except ProfileError as error:
            raise ToolInputError(error.sentence) from error


def _choose_limit(wanted: T, limit: T, *, narrows: bool) -> T:
    """Limit of the task itself, bounded by that of a profile that only narrows."""
    return min(wanted, limit) if wanted and narrows else wanted or limit


NO_AGENT: Final = "This conversation is not a sub-agent; send it a message."


class SubAgents:
    """Starts, watches and stops sub-agents; the machines of parent and child decide the consequences."""

    def __init__(self, ports: Ports, settings: EngineSettings, conversations: OpenConversations) -> None:
        assert ports.agents is not None, "sub-agents need a store"
        self._clock = ports.clock
        self._settings = settings
        self._store = ports.agents
        self._conversations = conversations
        self._opened = conversations.opened
        self.board = AgentBoard(ports.clock, self._opened)
        self._results = AgentResults(self._store, self._opened, self.board, ports.clock)
        self._scheduler = AgentScheduler(settings.max_agents, self._store, conversations, self._results, self.board)
        self._factory = AgentFactory(self._store, settings, conversations, self._scheduler, self._results, self.board)

    async def spawn(self, parent_id: str, call_id: str, request: SpawnRequest) -> tuple[StartedAgent, ...]:
        """Make the sub-agents of a call and start those that may."""
        self._refuse_when_full()
        all_running = await self._factory.start_all(
            self._get_parent(parent_id), call_id, request.tasks, SpawnMode.FAN_IN, sequential=request.sequential
        )
        return tuple(StartedAgent(running.conversation.id, running.facts.task) for running in all_running)

    async def begin(self, parent_id: str, call_id: str, request: TaskRequest) -> str:
        """Make one that works in the background; returns its id."""
        self._refuse_when_full()
        (running,) = await self._factory.start_all(
            self._get_parent(parent_id), call_id, (request,), SpawnMode.BACKGROUND
        )
        return running.conversation.id

    async def resume(self, parent_id: str, request: ResumeRequest) -> str:
        """Send an earlier one a new instruction; a working one reads it before its next model call."""
        self._refuse_when_full()
        row = await self._store.row(request.agent_id)
        if row is None or row.facts.parent_id != parent_id:
            known = ", ".join(view.id for view in self.board.views(parent_id)) or "none"
            raise ToolInputError(f"There is no task {request.agent_id} of this conversation. There are: {known}.")
        await self._send(request.agent_id, request.message, parent_id)
        return request.agent_id

    async def hint(self, agent_id: str, text: str) -> None:
        """Send a message of the user to a sub-agent: it resumes with it, or reads it before its next model call.

        It is stored when this returns, also where the sub-agent waits for its turn.

        Raises:
            EngineError: there is no such sub-agent, another process has it, the input guard refuses the text, or it
                cannot be stored.
            StorageError: it cannot be stored.
        """
        if await self._store.row(agent_id) is None:
            raise EngineError(NO_AGENT)
        opened, ports = self._opened.get(agent_id), self._conversations.ports
        run = run_of(opened.state) if opened is not None else None
        if why := await check_hint(ports, self._settings.input_guard, text, agent_id, run.id if run else ""):
            raise EngineError(why)
        await self._send(agent_id, text, USER)

    def stop(self, agent_ids: Iterable[str], by: StopCause = StopCause.USER) -> None:
        """Stop these; their text so far stays."""
        self._scheduler.stop(agent_ids, by)

    def stop_all(self, parent_id: str, by: StopCause = StopCause.USER) -> None:
        """Stop every sub-agent of a conversation; finished results wait for its user."""
        self._results.parent_stopped(parent_id)
        self._scheduler.stop([running.conversation.id for running in self._scheduler.of(parent_id)], by)

    def reconsider(self, parent_id: str) -> None:
        """Decide the open questions of a conversation's sub-agents again: its limits are theirs."""
        for running in self._scheduler.of(parent_id):
            running.conversation.reconsidering.soon()

    def close(self) -> None:
        """Stop all sub-agents, so that none begins when others end: Phoenix ends."""
        self._scheduler.stop(self._scheduler.everyone(), StopCause.ENDING)

    def at_work(self, parent_id: str) -> int:
        """Number of a conversation's sub-agents that work or queue."""
        return sum(running.outcome is None for running in self._scheduler.of(parent_id))

    def works(self, agent_id: str) -> bool:
        """True while this one works or queues, or while its end is not delivered."""
        return self._scheduler.get(agent_id) is not None

    def needs(self, parent_id: str) -> bool:
        """True when a conversation must stay open: sub-agents work, have undelivered results, or are viewed."""
        children = (self._opened.get(view.id) for view in self.board.views(parent_id))
        looked_at = any(child is not None and child.agents.watched for child in children)
        return looked_at or self.at_work(parent_id) > 0 or self.results(parent_id) > 0

    async def wait_finished(self, parent_id: str) -> None:
        """Wait until all of them have ended and their parent has their results."""
        while self.at_work(parent_id) or self._results.under_way:
            await self._results.one_more()

    async def welcome(self, conversation: Conversation, publisher: Publisher) -> None:
        """A conversation was opened: listen to it, and know its sub-agents of earlier days."""
        publisher.add(lambda update: self.follow(conversation, update))
        if conversation.record.agent is None:
            for row in await self._store.rows(conversation.id):
                self.board.put(conversation.id, view_of(row))
            self.board.count(conversation.id, await self._store.waiting(conversation.id))

    async def leave(self, parent: Conversation, by: StopCause) -> None:
        """A conversation is closed, its run is over: its sub-agents end with it."""
        await self._results.quiet()
        self.stop_all(parent.id, by)
        children = [running.conversation.id for running in self._scheduler.of(parent.id)]
        children += [view.id for view in self.board.views(parent.id) if view.id in self._opened]
        await asyncio.gather(*(self._conversations.close(child, by=by) for child in dict.fromkeys(children)))
        await self._results.quiet()
        self.board.forget(parent.id)

    def views(self, parent_id: str) -> tuple[AgentView, ...]:
        """Views of a conversation's sub-agents, oldest first."""
        return self.board.views(parent_id)

    def results(self, parent_id: str) -> int:
        """Number of results of its sub-agents that a conversation's model has not read yet."""
        return self.board.results(parent_id)

    def follow(self, conversation: Conversation, update: Update) -> None:
        """Handle an update of a conversation: a sub-agent's own, or a parent's."""
        facts = conversation.record.agent
        if facts is None:
            if isinstance(update, RunEnded):
                self._scheduler.stop([
                    running.conversation.id for running in self._scheduler.of(conversation.id) if not running.background
                ])
            if isinstance(update, StateChanged):
                self._update_time_limit(conversation)
            self._results.follow_parent(conversation, update)
            return
        self.board.follow(facts.parent_id, conversation.id, update)
        if isinstance(update, StateChanged):
            self._scheduler.follow_state(conversation.id, update.state)
            self._update_time_limit(self._opened.get(facts.parent_id))

    def _update_time_limit(self, parent: Conversation | None) -> None:
        """Pause the parent's time limit while its sub-agents only wait for answers of the user."""
        if parent is not None and isinstance(parent.state, AwaitingSubagents):
            parent.agents.wait_for_user(asked=self._scheduler.only_asks(parent.id))

    async def _send(self, agent_id: str, text: str, sender: str) -> None:
        """Store a message for one at work, which reads it before its next call; one that has ended goes on with it.

        Raises:
            EngineError: there is no such sub-agent, another process has it or its parent, or it cannot be stored.
            StorageError: it cannot be stored.
        """
        running = self._scheduler.get(agent_id)
        if running is None:
            await self._recall(agent_id, text, sender)
        elif running.is_over():
            await running.settled.wait()
            await self._send(agent_id, text, sender)
        else:
            await self._store.tell(agent_id, text, sender, self._clock.now())
            log_read_on(running.conversation.record)
            if running.is_over():  # another reader may have taken it meanwhile
                await self._scheduler.resume_for_late(running)

    async def _recall(self, agent_id: str, text: str, sender: str) -> None:
        row = await self._store.row(agent_id)
        if row is None:
            raise EngineError(NO_AGENT)
        parent = await self._conversations.open(row.facts.parent_id)
        conversation = await self._conversations.open(agent_id)  # last: it may be closed while it has no viewers
        if read_only := conversation.read_only or parent.read_only:
            raise EngineError(read_only)
        if self._scheduler.get(agent_id) is not None:  # another caller was first
            await self._send(agent_id, text, sender)
        else:
            await self._scheduler.resume(conversation, row.facts, parent, text, sender)

    def _get_parent(self, parent_id: str) -> Conversation:
        parent = self._opened.get(parent_id)
        if parent is None or parent.record.agent is not None:
            raise ToolInputError("A sub-agent cannot start sub-agents: do the task yourself.")
        return parent

    def _refuse_when_full(self) -> None:
        if why := self._settings.memory_gauge.refusal():
            raise ToolInputError(why)
