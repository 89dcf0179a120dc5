"""The sub-agents of this process: made for a call, started in order, heard to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from engine.agents.board import AgentBoard, view_of
from engine.agents.endings import Endings
from engine.agents.making import Making
from engine.agents.orders import ResumeOrder, SpawnOrder, TaskOrder
from engine.agents.prompting import first_prompt
from engine.agents.start_line import StartLine
from engine.conversation import Conversation
from engine.executor.publisher import Publisher
from engine.executor.session import EngineSettings, Ports
from engine.machine import agent_texts
from engine.machine.states import AgentOutcome, AgentTask, Completed, Errored, Failed, State
from engine.records import AgentFacts, ConversationRecord, RunPriority, SpawnMode
from engine.updates import AgentView, RunEnded, StateChanged, Update
from tools.contract import StartedAgent, ToolInputError

SUCCESS: Final = "success"


@dataclass(slots=True, eq=False)
class Hand:
    """One sub-agent that works, or waits to."""

    conversation: Conversation
    parent: Conversation
    facts: AgentFacts
    background: bool
    prompt: str
    stopped: bool = False
    ended: bool = False
    after: tuple[Hand, ...] = ()
    """Those whose results it gets, where they work one after the other."""
    outcome: AgentOutcome | None = None

    def was_stopped(self) -> bool:
        """Whether it is to end, though it may not have begun."""
        return self.stopped


class Crew:
    """Starts, watches and stops sub-agents; the machines of parent and child decide what it means."""

    def __init__(
        self,
        ports: Ports,
        settings: EngineSettings,
        opened: Mapping[str, Conversation],
        adopt: Callable[[ConversationRecord], Awaitable[Conversation]],
        reopen: Callable[[str], Awaitable[Conversation]],
    ) -> None:
        self._ports = ports
        assert ports.agents is not None, "a crew needs a store"
        self._store = ports.agents
        self._making = Making(ports, ports.agents, settings)
        self._opened = opened
        self._adopt = adopt
        self._reopen = reopen
        self._line = StartLine(settings.max_agents)
        self._hands: dict[str, Hand] = {}
        self._endings = Endings(ports.agents, opened)
        self.board = AgentBoard(ports.clock.now, self._tell)

    async def spawn(self, parent_id: str, call_id: str, order: SpawnOrder) -> tuple[StartedAgent, ...]:
        """Make the sub-agents of a call and start those that may."""
        parent = self._parent(parent_id)
        records = await self._making.make(parent.record, call_id, order.tasks, SpawnMode.FAN_IN)
        hands: list[Hand] = []
        for record, task in zip(records, order.tasks, strict=True):
            hand = await self._take_on(record, parent, first_prompt(task.task), background=False)
            hand.after = tuple(hands) if order.sequential else ()
            hands.append(hand)
        self._start(hands)
        return tuple(StartedAgent(hand.conversation.id, hand.facts.task) for hand in hands)

    async def begin(self, parent_id: str, call_id: str, order: TaskOrder) -> str:
        """Make one that works in the background; gives its id."""
        parent = self._parent(parent_id)
        (record,) = await self._making.make(parent.record, call_id, (order,), SpawnMode.BACKGROUND)
        hand = await self._take_on(record, parent, first_prompt(order.task), background=True)
        self._start((hand,))
        return record.id

    async def resume(self, parent_id: str, order: ResumeOrder) -> str:
        """Tell an earlier one how to go on; one that works reads it before its next model call."""
        row = await self._store.row(order.agent_id)
        if row is None or row.facts.parent_id != parent_id:
            known = ", ".join(view.id for view in self.board.views(parent_id)) or "none"
            raise ToolInputError(f"There is no task {order.agent_id} of this conversation. There are: {known}.")
        await self.hint(order.agent_id, order.message)
        return order.agent_id

    async def hint(self, agent_id: str, text: str) -> None:
        """A message to a sub-agent: it goes on with it, or reads it before its next model call.

        Raises:
            EngineError: there is no such conversation.
            StorageError: it cannot be stored.
        """
        if agent_id in self._hands:
            await self._store.tell(agent_id, text, self._ports.clock.now())
            return
        await self._store.make_background(agent_id)
        conversation = await self._reopen(agent_id)
        facts = conversation.record.agent
        if facts is None or conversation.read_only:
            return
        parent = self._parent(facts.parent_id)
        conversation.agents.belong_to(parent.agents)
        hand = Hand(conversation, parent, facts, background=True, prompt=text)
        self._hands[agent_id] = hand
        self._start((hand,))

    def stop(self, agent_ids: Iterable[str]) -> None:
        """Stop these; what they had written stays."""
        for agent_id in agent_ids:
            hand = self._hands.get(agent_id)
            if hand is None or hand.ended:
                continue
            hand.stopped = True
            if self._line.is_out(agent_id):
                hand.conversation.cancel()
            else:
                self._line.leave(agent_id)
                hand.conversation.agents.drop("cancelled", agent_texts.CANCELLED)

    def stop_all(self, parent_id: str) -> None:
        """Stop every sub-agent of a conversation."""
        self.stop([agent_id for agent_id, hand in self._hands.items() if hand.facts.parent_id == parent_id])

    def at_work(self, parent_id: str) -> int:
        """How many of a conversation's sub-agents work or wait to."""
        return sum(hand.facts.parent_id == parent_id for hand in self._hands.values())

    async def finished(self, parent_id: str) -> None:
        """Wait until all of them have ended and their parent has answered what they found."""
        while self.at_work(parent_id) or self._endings.under_way:
            self._endings.settled.clear()
            await self._endings.settled.wait()

    async def welcome(self, conversation: Conversation, publisher: Publisher) -> None:
        """A conversation was opened: listen to it, and know its sub-agents of earlier days."""
        publisher.add(lambda update: self.follow(conversation, update))
        if conversation.record.agent is None:
            for row in await self._store.rows(conversation.id):
                self.board.put(conversation.id, view_of(row))
            self.board.count(conversation.id, await self._store.waiting(conversation.id))

    async def leave(self, parent: Conversation, forget: Callable[[str], Awaitable[None]]) -> None:
        """A conversation is closed: its sub-agents end with it."""
        self.stop_all(parent.id)
        children = [hand.conversation.id for hand in self._hands.values() if hand.parent is parent]
        children += [view.id for view in self.board.views(parent.id) if view.id in self._opened]
        await asyncio.gather(*(forget(child) for child in dict.fromkeys(children)))
        self._hands = {key: hand for key, hand in self._hands.items() if hand.parent is not parent}
        self.board.forget(parent.id)

    def views(self, parent_id: str) -> tuple[AgentView, ...]:
        """How a conversation's sub-agents stand, oldest first."""
        return self.board.views(parent_id)

    def results(self, parent_id: str) -> int:
        """How many ends of its sub-agents a conversation's model has not read yet."""
        return self.board.results(parent_id)

    def follow(self, conversation: Conversation, update: Update) -> None:
        """Take over what a conversation tells: a sub-agent's own, or a parent's."""
        facts = conversation.record.agent
        if facts is None:
            self._follow_parent(conversation, update)
            return
        self.board.follow(facts.parent_id, conversation.id, update)
        hand = self._hands.get(conversation.id)
        if hand is not None and isinstance(update, StateChanged) and _is_end(update.state) and not hand.ended:
            hand.ended = True
            self._endings.start(self._settle(hand, update.state))

    def _follow_parent(self, parent: Conversation, update: Update) -> None:
        if not isinstance(update, RunEnded):
            return
        self.stop([key for key, hand in self._hands.items() if hand.parent is parent and not hand.background])
        if update.status == SUCCESS and any(view.background for view in self.board.views(parent.id)):
            self._endings.start(self._endings.wake(parent))
        self._endings.start(self._endings.recount(parent, self.board))

    async def _take_on(
        self, record: ConversationRecord, parent: Conversation, prompt: str, *, background: bool
    ) -> Hand:
        conversation = await self._adopt(record)
        conversation.agents.belong_to(parent.agents)
        assert record.agent is not None, "what was made for a call is a sub-agent"
        hand = Hand(conversation, parent, record.agent, background, prompt)
        self._hands[record.id] = hand
        row = await self._store.row(record.id)
        if row is not None:
            self.board.put(parent.id, view_of(row))
        return hand

    def _start(self, hands: Iterable[Hand]) -> None:
        for hand in hands:
            if all(one.outcome is not None for one in hand.after):
                self._line.join(hand.conversation.id, RunPriority(hand.facts.priority))
        for agent_id in self._line.call():
            hand = self._hands[agent_id]
            prompt = first_prompt(hand.prompt, _earlier(hand.after))
            facts = hand.facts
            hand.conversation.agents.begin(prompt, facts.max_turns, facts.timeout, hand.was_stopped)

    async def _settle(self, hand: Hand, state: State) -> None:
        """Tell the parent, then let the next ones start."""
        agent_id = hand.conversation.id
        hand.outcome = outcome = await self._endings.outcome(agent_id, state)
        view = self.board.get(hand.parent.id, agent_id)
        if view is not None:
            done = replace(view, outcome=outcome, state=state, ended=self._ports.clock.now(), activity="", waits=False)
            self.board.put(hand.parent.id, done)
        self._line.leave(agent_id)
        self._hands.pop(agent_id, None)
        if hand.background:
            await self._endings.recount(hand.parent, self.board)
            if not hand.stopped:  # who stops one does not want its parent to begin
                await self._endings.wake(hand.parent)
        else:
            hand.parent.agents.ended(outcome)
        self._start([one for one in self._hands.values() if hand in one.after and not one.stopped])

    def _parent(self, parent_id: str) -> Conversation:
        parent = self._opened.get(parent_id)
        if parent is None or parent.record.agent is not None:
            raise ToolInputError("A sub-agent cannot start sub-agents: do the task yourself.")
        return parent

    def _tell(self, parent_id: str) -> None:
        parent = self._opened.get(parent_id)
        if parent is not None:
            parent.agents.tell(self.board.views(parent_id), self.board.results(parent_id))


def _is_end(state: State) -> bool:
    return isinstance(state, Completed | Failed | Errored)


def _earlier(hands: Iterable[Hand]) -> str:
    """What those before it found, as their parent will read it."""
    tasks = [AgentTask(hand.conversation.id, hand.facts.task) for hand in hands]
    outcomes = [hand.outcome for hand in hands if hand.outcome is not None]
    return agent_texts.aggregate(tasks, outcomes) if tasks else ""
