"""The sub-agents of this process: created for a call, resumed, stopped, and listed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping

from engine.agents.closer import AgentCloser
from engine.agents.factory import AgentFactory
from engine.agents.messages import AgentMessages
from engine.agents.parent_waker import ParentWaker
from engine.agents.results import AgentResults
from engine.agents.scheduler import AgentScheduler, RunningAgent
from engine.agents.spawn_requests import ResumeRequest, SpawnRequest, TaskRequest
from engine.agents.starter import AgentStarter
from engine.agents.views import AgentBoard, view_of
from engine.conversation import Conversation
from engine.executor.publisher import Publisher
from engine.executor.session import EngineSettings, Ports
from engine.machine.states import AwaitingSubagents
from engine.ports.agents import USER
from engine.records import SpawnMode, StoredConversation
from engine.updates import AgentView, RunEnded, StateChanged, Update
from tools.contract import StartedAgent, ToolInputError


class SubAgents:
    """Starts, watches and stops sub-agents; the machines of parent and child decide the consequences."""

    def __init__(
        self,
        ports: Ports,
        settings: EngineSettings,
        opened: Mapping[str, Conversation],
        adopt: Callable[[StoredConversation], Awaitable[Conversation]],
        reopen: Callable[[str], Awaitable[Conversation]],
        forget: Callable[[str], Coroutine[None, None, None]],
    ) -> None:
        self._ports = ports
        self._settings = settings
        assert ports.agents is not None, "sub-agents need a store"
        self._store = ports.agents
        self._opened = opened
        self._forget = forget
        self._results = AgentResults(ports.agents, opened, ports.clock.now)
        self.board = AgentBoard(ports.clock.now, self._tell)
        self._waker = ParentWaker(self._results, self.board)
        self._scheduler = AgentScheduler(settings.max_agents, self._results, self.board, ports.clock.now)
        self._scheduler.left = self._ended
        factory = AgentFactory(ports, ports.agents, settings)
        self._starter = AgentStarter(factory, ports.agents, adopt, self._scheduler, self._results, self.board)
        self._messages = AgentMessages(ports, ports.agents, self._scheduler, self._starter, self.board, opened, reopen)
        works = self._scheduler.get
        self.closer = AgentCloser(opened, lambda agent_id: works(agent_id) is not None, forget, self._results.start)

    async def spawn(self, parent_id: str, call_id: str, request: SpawnRequest) -> tuple[StartedAgent, ...]:
        """Make the sub-agents of a call and start those that may."""
        self._refuse_when_full()
        all_running = await self._starter.start_all(
            self._parent(parent_id), call_id, request.tasks, SpawnMode.FAN_IN, sequential=request.sequential
        )
        return tuple(StartedAgent(running.conversation.id, running.facts.task) for running in all_running)

    async def begin(self, parent_id: str, call_id: str, request: TaskRequest) -> str:
        """Make one that works in the background; returns its id."""
        self._refuse_when_full()
        (running,) = await self._starter.start_all(self._parent(parent_id), call_id, (request,), SpawnMode.BACKGROUND)
        return running.conversation.id

    async def resume(self, parent_id: str, request: ResumeRequest) -> str:
        """Send an earlier one a new instruction; a working one reads it before its next model call."""
        self._refuse_when_full()
        row = await self._store.row(request.agent_id)
        if row is None or row.facts.parent_id != parent_id:
            known = ", ".join(view.id for view in self.board.views(parent_id)) or "none"
            raise ToolInputError(f"There is no task {request.agent_id} of this conversation. There are: {known}.")
        await self._messages.tell(request.agent_id, request.message, parent_id)
        return request.agent_id

    async def hint(self, agent_id: str, text: str) -> None:
        """Send a message of the user to a sub-agent: it resumes with it, or reads it before its next model call.

        It is stored when this returns, also where the sub-agent waits for its turn.

        Raises:
            EngineError: there is no such sub-agent, another process has it, or it cannot be stored.
            StorageError: it cannot be stored.
        """
        await self._messages.tell(agent_id, text, USER)

    def stop(self, agent_ids: Iterable[str]) -> None:
        """Stop these; their text so far stays."""
        self._scheduler.stop(agent_ids)

    def stop_all(self, parent_id: str) -> None:
        """Stop every sub-agent of a conversation; finished results wait for its user."""
        self._waker.stopped(parent_id)
        self._scheduler.stop([running.conversation.id for running in self._scheduler.of(parent_id)])

    def reconsider(self, parent_id: str) -> None:
        """Decide the open questions of a conversation's sub-agents again: its limits are theirs."""
        for running in self._scheduler.of(parent_id):
            running.conversation.reconsidering.soon()

    def close(self) -> None:
        """Stop all sub-agents, so that none begins when others end."""
        self._scheduler.stop(self._scheduler.everyone())

    def at_work(self, parent_id: str) -> int:
        """Number of a conversation's sub-agents that work or queue."""
        return sum(running.outcome is None for running in self._scheduler.of(parent_id))

    def needs(self, parent_id: str) -> bool:
        """True when a conversation must stay open: sub-agents work, have undelivered results, or are viewed."""
        children = (self._opened.get(view.id) for view in self.board.views(parent_id))
        looked_at = any(child is not None and child.agents.watched for child in children)
        return looked_at or self.at_work(parent_id) > 0 or self.results(parent_id) > 0

    async def finished(self, parent_id: str) -> None:
        """Wait until all of them have ended and their parent has their results."""
        while self.at_work(parent_id) or self._results.under_way:
            await self._results.one_more()

    async def welcome(self, conversation: Conversation, publisher: Publisher) -> None:
        """A conversation was opened: listen to it, and know its sub-agents of earlier days."""
        publisher.add(lambda update: self.follow(conversation, update))
        if conversation.record.agent is not None:
            publisher.left = lambda: self.closer.soon(conversation)
        else:
            for row in await self._store.rows(conversation.id):
                self.board.put(conversation.id, view_of(row))
            self.board.count(conversation.id, await self._store.waiting(conversation.id))

    async def leave(self, parent: Conversation) -> None:
        """A conversation is closed, its run is over: its sub-agents end with it."""
        await self._results.quiet()
        self.stop_all(parent.id)
        children = [running.conversation.id for running in self._scheduler.of(parent.id)]
        children += [view.id for view in self.board.views(parent.id) if view.id in self._opened]
        await asyncio.gather(*(self._forget(child) for child in dict.fromkeys(children)))
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
            self._follow_parent(conversation, update)
            return
        self.board.follow(facts.parent_id, conversation.id, update)
        if isinstance(update, StateChanged):
            self._scheduler.heard(conversation.id, update.state)
            self._mind_time(self._opened.get(facts.parent_id))

    def _follow_parent(self, parent: Conversation, update: Update) -> None:
        if isinstance(update, RunEnded):
            self._scheduler.stop([
                running.conversation.id for running in self._scheduler.of(parent.id) if not running.background
            ])
        if isinstance(update, StateChanged):
            self._mind_time(parent)
        self._waker.follow(parent, update)

    def _mind_time(self, parent: Conversation | None) -> None:
        """Pause the parent's time limit while its sub-agents only wait for answers of the user."""
        if parent is not None and isinstance(parent.state, AwaitingSubagents):
            parent.agents.wait_for_user(asked=self._scheduler.only_asks(parent.id))

    def _ended(self, running: RunningAgent) -> None:
        self.closer.soon(running.conversation)
        self._results.start(self._messages.hear_late(running))

    def _parent(self, parent_id: str) -> Conversation:
        parent = self._opened.get(parent_id)
        if parent is None or parent.record.agent is not None:
            raise ToolInputError("A sub-agent cannot start sub-agents: do the task yourself.")
        return parent

    def _refuse_when_full(self) -> None:
        if why := self._settings.why_full():
            raise ToolInputError(why)

    def _tell(self, parent_id: str) -> None:
        parent = self._opened.get(parent_id)
        if parent is not None:
            parent.agents.tell(self.board.views(parent_id), self.board.results(parent_id))
