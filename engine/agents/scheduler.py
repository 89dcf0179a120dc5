"""Sub-agents that work, or wait to: started in order, heard to the end, told of to their parent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from engine.agents.agent_queue import AgentQueue
from engine.agents.prompting import previous_results
from engine.agents.results import AgentResults
from engine.agents.views import AgentBoard
from engine.conversation import Conversation
from engine.executor.requests import Receipt
from engine.machine import agent_texts
from engine.machine.states import AgentOutcome, AgentTask, AwaitingApproval, Completed, Errored, Failed, State, is_busy
from engine.records import AgentFacts, RunPriority


class RunningAgent(Struct, eq=False):
    """One sub-agent that works, or waits to."""

    conversation: Conversation
    parent: Conversation
    facts: AgentFacts
    background: bool
    ready: bool = False
    """Whether its parent is about to wait for it: not before may it end, or its end would be told to nobody."""
    stopped: bool = False
    begun: bool = False
    ended: bool = False
    after: tuple[RunningAgent, ...] = ()
    """Those whose results it gets, where they work one after the other."""
    outcome: AgentOutcome | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its end is known and it may be told to go on."""

    def was_stopped(self) -> bool:
        """Whether it is to end, though it may not have begun."""
        return self.stopped

    def is_over(self) -> bool:
        """Whether it ends, or has: it reads nothing more that it is told."""
        return self.ended or self.stopped

    @property
    def may_begin(self) -> bool:
        """Whether it waits for nobody but its turn."""
        return not self.stopped and all(one.outcome is not None for one in self.after)


class AgentScheduler:
    """Every hand of this process. Whatever happens to one, it leaves: nobody waits for it for ever."""

    def __init__(self, room: int, endings: AgentResults, board: AgentBoard, now: Callable[[], float]) -> None:
        self._line = AgentQueue(room)
        self._endings = endings
        self._board = board
        self._now = now
        self._hands: dict[str, RunningAgent] = {}
        self.left: Callable[[RunningAgent], None] = lambda _hand: None
        """Called for each one that has ended and been told of."""

    def get(self, agent_id: str) -> RunningAgent | None:
        """The one that works under this id."""
        return self._hands.get(agent_id)

    def of(self, parent_id: str) -> list[RunningAgent]:
        """Those of a conversation."""
        return [hand for hand in self._hands.values() if hand.facts.parent_id == parent_id]

    def only_asks(self, parent_id: str) -> bool:
        """Whether each one at work that a conversation waits for asks its user."""
        at_work = [hand for hand in self.of(parent_id) if not (hand.background or hand.ended)]
        begun = [hand.conversation.state for hand in at_work if hand.begun]
        return bool(begun) and all(isinstance(state, AwaitingApproval) for state in begun)

    def dismiss(self, hands: Iterable[RunningAgent]) -> None:
        """End these, which have not begun."""
        hands = tuple(hands)
        self.stop([hand.conversation.id for hand in hands])
        self.start(hands)

    def everyone(self) -> list[str]:
        """The ids of all."""
        return list(self._hands)

    def take(self, hand: RunningAgent) -> None:
        """Count one in; it begins with `start`."""
        self._hands[hand.conversation.id] = hand

    def start(self, hands: Iterable[RunningAgent]) -> None:
        """Let these wait for their turn, and those begin whose turn it is; those that were stopped before end."""
        for hand in hands:
            early, hand.ready = hand.stopped and not hand.ready, True
            if early:
                self._drop(hand)
            elif hand.may_begin:
                self._line.join(hand.conversation.id, RunPriority(hand.facts.priority))
        for agent_id in self._line.call():
            hand = self._hands[agent_id]
            found = previous_results(_earlier(hand.after))
            begun = hand.conversation.agents.begin(hand.facts, found, hand.was_stopped)
            begun.add_done_callback(partial(self._answered, hand))

    def stop(self, agent_ids: Iterable[str]) -> None:
        """Stop these; what they had written stays."""
        for agent_id in agent_ids:
            hand = self._hands.get(agent_id)
            if hand is None or hand.ended:
                continue
            hand.stopped = True
            if self._line.is_out(agent_id):
                hand.conversation.cancel()
            elif hand.ready:
                self._line.leave(agent_id)
                self._drop(hand)

    def heard(self, agent_id: str, state: State) -> None:
        """One of them is in another state."""
        hand = self._hands.get(agent_id)
        if hand is not None and isinstance(state, Completed | Failed | Errored):
            self._end(hand, state)

    def _drop(self, hand: RunningAgent) -> None:
        dropped = hand.conversation.agents.drop("cancelled", agent_texts.CANCELLED)
        dropped.add_done_callback(partial(self._answered, hand))

    def _answered(self, hand: RunningAgent, _receipt: asyncio.Future[Receipt]) -> None:
        """Its first message was taken, or not: one that does not work now never will, and changes its state no more."""
        hand.begun = is_busy(hand.conversation.state)
        if not hand.begun:
            self._end(hand, hand.conversation.state)

    def _end(self, hand: RunningAgent, state: State) -> None:
        if not hand.ended:
            hand.ended = True
            self._endings.start(self._settle(hand, state))

    async def _settle(self, hand: RunningAgent, state: State) -> None:
        """Find out how it ended, tell its parent, let the next ones start."""
        agent_id, parent = hand.conversation.id, hand.parent
        if isinstance(state, Errored):
            await hand.conversation.agents.drop(state.kind, state.message)  # brings it to rest where the store allows
        hand.outcome = outcome = await self._endings.outcome(agent_id, state)
        self._line.leave(agent_id)
        if hand.background:
            await self._endings.recount(parent, self._board)  # first: what Esc stops is at work, or waits to be read
        view = self._board.get(parent.id, agent_id)
        if view is not None:
            ended = replace(
                view, outcome=outcome, state=hand.conversation.state, ended=self._now(), activity="", waits=False
            )
            self._board.put(parent.id, ended)
        told = parent.agents.ended(outcome) if not hand.background else None
        self.start([one for one in self._hands.values() if hand in one.after])
        if told is not None:
            # Before that it may not go on: a crash would leave its parent another end.
            await self._endings.hear(parent, outcome, await told, self._board)
        del self._hands[agent_id]
        hand.settled.set()
        self.left(hand)
        if hand.background:
            self._endings.wake(parent)


def _earlier(hands: Iterable[RunningAgent]) -> str:
    """What those before it found, as their parent will read it."""
    tasks = [AgentTask(hand.conversation.id, hand.facts.task) for hand in hands]
    outcomes = [hand.outcome for hand in hands if hand.outcome is not None]
    return agent_texts.aggregate(tasks, outcomes) if tasks else ""
