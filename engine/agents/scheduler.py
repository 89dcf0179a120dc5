"""Working and queued sub-agents: started in order, followed to the end, reported to their parent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from engine.agents.results import AgentBoard, AgentResults
from engine.context.prompt import previous_results
from engine.conversation import Conversation
from engine.executor.requests import EngineError, Receipt, Refused
from engine.machine import agent_texts
from engine.machine.states import (
    AgentOutcome,
    AgentTask,
    AwaitingApproval,
    Completed,
    Errored,
    Failed,
    State,
    StopCause,
    is_busy,
)
from engine.open_conversations import OpenConversations
from engine.ports.storage import USER
from engine.records import AgentFacts, RunPriority

if TYPE_CHECKING:
    from engine.store.agents import AgentStore


_RANK = {RunPriority.CRITICAL: 0, RunPriority.HIGH: 1, RunPriority.NORMAL: 2, RunPriority.LOW: 3}


class RunningAgent(Struct, eq=False):
    """One sub-agent that works, or waits to."""

    conversation: Conversation
    parent: Conversation
    facts: AgentFacts
    background: bool
    ready: bool = False
    """True once the parent is waiting. Finishing earlier would lose the result."""
    stopped: bool = False
    ending: bool = False
    """True where it was stopped because Phoenix ends."""
    begun: bool = False
    ended: bool = False
    after: tuple[RunningAgent, ...] = ()
    """Earlier agents whose results it gets, when they work in sequence."""
    outcome: AgentOutcome | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its end is known and it may be resumed."""

    def why_dropped(self) -> str:
        """Reason of its end when it is to end, even before it began; else empty."""
        if not self.stopped:
            return ""
        return agent_texts.INTERRUPTED if self.ending else agent_texts.CANCELLED

    def is_over(self) -> bool:
        """True once it ends or has ended: it reads no further messages."""
        return self.ended or self.stopped

    @property
    def may_begin(self) -> bool:
        """True when it waits only for a place."""
        return not self.stopped and all(one.outcome is not None for one in self.after)


class AgentQueue:
    """Ids that wait for a free place, by priority, then arrival; at most `room` are out at once (SPEC SDK-10)."""

    def __init__(self, room: int) -> None:
        self._room = max(room, 1)
        self._waiting: list[tuple[int, int, str]] = []
        self._out: set[str] = set()
        self._arrivals = 0

    def join(self, agent_id: str, priority: RunPriority) -> None:
        """Wait for a place."""
        self._arrivals += 1
        self._waiting.append((_RANK[priority], self._arrivals, agent_id))
        self._waiting.sort()

    def leave(self, agent_id: str) -> None:
        """Wait no longer, or free the place."""
        self._waiting = [one for one in self._waiting if one[2] != agent_id]
        self._out.discard(agent_id)

    def call(self) -> list[str]:
        """Give places to as many waiting ids as are free, and return them."""
        free = max(self._room - len(self._out), 0)
        called = [agent_id for _, _, agent_id in self._waiting[:free]]
        self._waiting = self._waiting[free:]
        self._out |= set(called)
        return called

    def is_out(self, agent_id: str) -> bool:
        """True when it has a place."""
        return agent_id in self._out


class AgentScheduler:
    """Runs the sub-agents of this process; each leaves in the end, so that no parent waits forever."""

    def __init__(
        self, room: int, store: AgentStore, conversations: OpenConversations, results: AgentResults, board: AgentBoard
    ) -> None:
        self._queue = AgentQueue(room)
        self._store = store
        self._conversations = conversations
        self._results = results
        self._board = board
        self._running: dict[str, RunningAgent] = {}

    def get(self, agent_id: str) -> RunningAgent | None:
        """The one that works under this id."""
        return self._running.get(agent_id)

    def of(self, parent_id: str) -> list[RunningAgent]:
        """Sub-agents of a conversation."""
        return [running for running in self._running.values() if running.facts.parent_id == parent_id]

    def only_asks(self, parent_id: str) -> bool:
        """True when each working one that a conversation waits for has an open question."""
        at_work = [running for running in self.of(parent_id) if not (running.background or running.ended)]
        begun = [running.conversation.state for running in at_work if running.begun]
        return bool(begun) and all(isinstance(state, AwaitingApproval) for state in begun)

    def dismiss(self, all_running: Iterable[RunningAgent]) -> None:
        """End these, which have not begun."""
        all_running = tuple(all_running)
        self.stop([running.conversation.id for running in all_running])
        self.start(all_running)

    def everyone(self) -> list[str]:
        """The ids of all."""
        return list(self._running)

    def add(
        self, conversation: Conversation, facts: AgentFacts, parent: Conversation, *, background: bool
    ) -> RunningAgent:
        """Register one with its parent; it begins with `start`."""
        conversation.agents.belong_to(parent.agents)
        running = RunningAgent(conversation, parent, facts, background)
        self._running[conversation.id] = running
        return running

    async def resume(
        self, conversation: Conversation, facts: AgentFacts, parent: Conversation, text: str, sender: str
    ) -> None:
        """Let one that has ended go on with this text, and with its unread messages (SPEC UNI-25).

        Raises:
            EngineError: it cannot.
        """
        running = self.add(conversation, facts, parent, background=True)
        try:
            receipt = await asyncio.shield(conversation.agents.recall(text, sender))
        except BaseException:
            self.dismiss((running,))
            raise
        if isinstance(receipt, Refused):
            self.dismiss((running,))
            raise EngineError(receipt.reason)
        self._board.is_background(parent.id, conversation.id)
        self.start((running,))

    async def resume_for_late(self, running: RunningAgent) -> None:
        """Resume it for messages that arrived while it submitted its result, if its parent is open."""
        await running.settled.wait()
        agent_id, parent, conversations = running.conversation.id, running.parent, self._conversations
        if running.stopped or not running.begun or not await self._store.waiting(agent_id):
            return
        conversation = await conversations.open(agent_id)
        # A closing parent waits for this: it is not opened again.
        if conversations.opened.get(parent.id) is parent and self.get(agent_id) is None:
            await self.resume(conversation, running.facts, parent, "", USER)

    def start(self, all_running: Iterable[RunningAgent]) -> None:
        """Let these wait for their turn, and those begin whose turn it is; those that were stopped before end."""
        for running in all_running:
            early, running.ready = running.stopped and not running.ready, True
            if early:
                self._drop(running)
            elif running.may_begin:
                self._queue.join(running.conversation.id, RunPriority(running.facts.priority))
        for agent_id in self._queue.call():
            running = self._running[agent_id]
            found = previous_results(_aggregate_results(running.after))
            begun = running.conversation.agents.begin(running.facts, found, running.why_dropped)
            begun.add_done_callback(partial(self._note_receipt, running))

    def stop(self, agent_ids: Iterable[str], by: StopCause = StopCause.USER) -> None:
        """Stop these; their text so far stays."""
        for agent_id in agent_ids:
            running = self._running.get(agent_id)
            if running is None or running.ended:
                continue
            running.stopped, running.ending = True, running.ending or by is StopCause.ENDING
            if self._queue.is_out(agent_id):
                running.conversation.cancel(by)
            elif running.ready:
                self._queue.leave(agent_id)
                self._drop(running)

    def follow_state(self, agent_id: str, state: State) -> None:
        """One of them is in another state."""
        running = self._running.get(agent_id)
        if running is not None and isinstance(state, Completed | Failed | Errored):
            self._end(running, state)

    def _drop(self, running: RunningAgent) -> None:
        why = running.why_dropped()
        dropped = running.conversation.agents.drop(why, why)
        dropped.add_done_callback(partial(self._note_receipt, running))

    def _note_receipt(self, running: RunningAgent, _receipt: asyncio.Future[Receipt]) -> None:
        """Handle the receipt of its first message: a sub-agent that is idle now never starts, and keeps its state."""
        running.begun = is_busy(running.conversation.state)
        if not running.begun:
            self._end(running, running.conversation.state)

    def _end(self, running: RunningAgent, state: State) -> None:
        if not running.ended:
            running.ended = True
            self._results.start(self._settle(running, state))

    async def _settle(self, running: RunningAgent, state: State) -> None:
        """Determine its outcome, report it to its parent, let the next ones start."""
        agent_id, parent = running.conversation.id, running.parent
        if isinstance(state, Errored):
            # Brings it to rest if the store works.
            await running.conversation.agents.drop(state.kind, state.message)
        running.outcome = outcome = await self._results.outcome(agent_id, state)
        self._queue.leave(agent_id)
        if running.background:
            await self._results.recount(parent)  # first, so that Esc finds it working or unread
        view = self._board.get(parent.id, agent_id)
        if view is not None:
            now, state = self._conversations.ports.clock.now(), running.conversation.state
            ended = replace(view, outcome=outcome, state=state, ended=now, activity="", waits=False)
            self._board.put(parent.id, ended)
        told = parent.agents.deliver_end(outcome) if not running.background else None
        self.start([one for one in self._running.values() if running in one.after])
        if told is not None:
            # Before that it must not resume: a crash would leave its parent a second end.
            await self._results.hear(parent, outcome, await told)
        del self._running[agent_id]
        running.settled.set()
        self._conversations.resting.soon(running.conversation)
        self._results.start(self.resume_for_late(running))
        if running.background:
            self._results.wake(parent)


def _aggregate_results(all_running: Iterable[RunningAgent]) -> str:
    """Results of the earlier agents, in the form for their parent."""
    tasks = [AgentTask(running.conversation.id, running.facts.task) for running in all_running]
    outcomes = [running.outcome for running in all_running if running.outcome is not None]
    return agent_texts.aggregate(tasks, outcomes) if tasks else ""
