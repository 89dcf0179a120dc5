"""Sub-agents whose rows a test writes; keeps what was asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine.machine.messages import ToolCall
from engine.machine.states import (
    AgentOutcome,
    AgentStatus,
    AgentTask,
    AwaitingApproval,
    AwaitingLlm,
    AwaitingSubagents,
    Completed,
    Failed,
    Idle,
    Requesting,
    Run,
    State,
    StopCause,
    ToolExecuting,
    ToolRound,
)
from engine.records import AgentFacts, SpawnMode
from engine.updates import AgentsChanged, AgentView, ApprovalAsked, Question

if TYPE_CHECKING:
    from tests.support.fake_engine import FakeConversation, FakeEngine

RUN = Run("agent-run", 20)
SPAWN = ToolCall("spawn-1", "spawn_agents", '{"tasks": []}')
BASH = ToolCall("call-9", "bash", "{}")
THINKS: State = AwaitingLlm(1, RUN, Requesting())
RUNS: State = ToolExecuting(1, RUN, ToolRound("m", BASH))
ASKS: State = AwaitingApproval(1, RUN, ToolRound("m", BASH), "commands ask in mode ask")


@dataclass
class FakeSubAgents:
    """`put` tells the parent's subscribers, as the engine's does."""

    engine: FakeEngine
    rows: dict[str, dict[str, AgentView]] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    hints: list[tuple[str, str]] = field(default_factory=list)

    def views(self, parent_id: str) -> Sequence[AgentView]:
        return tuple(self.rows.get(parent_id, {}).values())

    def results(self, parent_id: str) -> int:
        return self.waiting.get(parent_id, 0)

    def stop(self, agent_ids: Iterable[str], by: StopCause = StopCause.USER) -> None:
        for agent_id in agent_ids:
            self.stopped.append(agent_id)
            parent_id = next(one for one, rows in self.rows.items() if agent_id in rows)
            self.end(parent_id, agent_id, AgentStatus.CANCELLED, reason="cancelled")

    def stop_all(self, parent_id: str, by: StopCause = StopCause.USER) -> None:
        self.stop([view.id for view in self.views(parent_id) if view.outcome is None])

    async def hint(self, agent_id: str, text: str) -> None:
        self.hints.append((agent_id, text))

    def put(self, parent: FakeConversation, view: AgentView) -> None:
        """Add a row, or replace it; the sub-agent's conversation is there too, in the row's state."""
        self.rows.setdefault(parent.id, {})[view.id] = view
        if view.id not in self.engine.opened:
            self._open(parent, view)
        self.engine.opened[view.id].become(view.state)
        self.tell(parent.id)

    def _open(self, parent: FakeConversation, view: AgentView) -> None:
        from tests.support.fake_engine import FakeConversation  # noqa: PLC0415 - each needs the other

        mode = SpawnMode.BACKGROUND if view.background else SpawnMode.FAN_IN
        facts = AgentFacts(parent.id, mode, SPAWN.id, len(self.rows[parent.id]), view.task)
        record = replace(parent.record, id=view.id, title=view.task[:50], agent=facts, message_count=0, draft="")
        self.engine.opened[view.id] = FakeConversation(record, self.engine)

    def tell(self, parent_id: str) -> None:
        self.engine.opened[parent_id].play(AgentsChanged(tuple(self.views(parent_id)), self.results(parent_id)))

    def end(
        self,
        parent_id: str,
        agent_id: str,
        status: AgentStatus = AgentStatus.SUCCESS,
        text: str = "",
        reason: str = "",
        at: float = 0.0,
    ) -> None:
        """One has ended."""
        view = self.rows[parent_id][agent_id]
        state: State = Completed(2, text) if status is AgentStatus.SUCCESS else Failed(2, status.value, reason, text)
        outcome = AgentOutcome(agent_id, status, text, reason)
        ended = replace(view, state=state, outcome=outcome, activity="", waits=False, asked=0.0)
        ended = replace(ended, ended=at or view.started + 58.0)
        self.put(self.engine.opened[parent_id], ended)

    def ask(self, parent: FakeConversation, agent_id: str, question: Question) -> None:
        """One asks."""
        view = self.rows[parent.id][agent_id]
        asked = max(view.last_output, view.started)
        self.put(parent, replace(view, state=ASKS, asked=asked, activity=f"bash {question.request.summary}"))
        self.engine.opened[agent_id].play(ApprovalAsked(question))
        self.tell(parent.id)


def agent(agent_id: str, task: str, started: float, state: State = THINKS, **more: object) -> AgentView:
    """A row of a sub-agent at work."""
    made = AgentView(
        id=agent_id,
        task=task,
        profile="explore",
        model="demo/guide",
        background=False,
        state=state,
        waits=isinstance(state, Idle),
        activity="",
        turn=3,
        max_turns=20,
        started=started,
        ended=0.0,
        timeout=300.0,
        tokens=12_400,
        cost_usd=0.02,
        last_output=started + 40,
    )
    return replace(made, **more)


def waits_for(*views: AgentView) -> AwaitingSubagents:
    """The state of the parent that spawned these."""
    tasks = tuple(AgentTask(view.id, view.task) for view in views)
    outcomes = tuple(view.outcome for view in views if view.outcome is not None)
    return AwaitingSubagents(1, Run("run-1", 50), ToolRound("m", SPAWN), tasks, outcomes)
