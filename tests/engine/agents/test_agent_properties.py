"""Any events of sub-agents, in any order: none is lost, none is delivered twice, no wait is endless."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from engine.agents.manager import SubAgents
from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import EngineError
from engine.machine import agent_texts
from engine.machine.messages import Role, ToolResultBlock
from engine.machine.states import (
    AgentStatus,
    AgentTask,
    AwaitingSubagents,
    Cancelling,
    Completed,
    Errored,
    Failed,
    Idle,
)
from engine.ports import Committed, Move, StorageError
from engine.records import AgentRow
from engine.updates import MessageSaved, StateChanged, Update
from tests.support.engine import EngineHarness, engine_harness
from tests.support.fates import MORE, Fate, Fates, unanswered, words

SECONDS = 60.0
"""After which something is stuck."""


@dataclass(frozen=True)
class Plan:
    """Agents and what happens to them."""

    fates: tuple[Fate, ...]
    sequential: bool
    background: bool
    beside: bool
    room: int
    deeds: tuple[tuple[str, int], ...]


DEEDS = ("go", "go", "go", "stop", "hint", "time", "spin", "spin", "break", "break parent", "esc")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    fates = tuple(draw(st.lists(st.sampled_from(Fate), min_size=1, max_size=10)))
    deed = st.tuples(st.sampled_from(DEEDS), st.integers(0, len(fates) - 1))
    return Plan(
        fates,
        sequential=draw(st.booleans()),
        background=draw(st.integers(0, 3)) == 0,
        beside=draw(st.booleans()),
        room=draw(st.integers(1, 4)),
        deeds=tuple(draw(st.lists(deed, max_size=14))),
    )


class World:
    """One plan carried out on a real engine."""

    def __init__(self, plan: Plan, harness: EngineHarness, fates: Fates, parent: Conversation) -> None:
        self.plan, self.harness, self.fates, self.parent = plan, harness, fates, parent
        assert harness.engine.sub_agents is not None
        self.sub_agents: SubAgents = harness.engine.sub_agents
        self.failing: set[str] = set()
        self.hinted = self.broke_parent = self.escaped = False
        self.hints: list[asyncio.Task[None]] = []
        self.seen: list[AwaitingSubagents | Cancelling] = []
        self.said = 0
        """Replies of the parent's model that were stored."""
        self.said_before_esc: int | None = None
        """None while a reply that came before Esc is being stored."""
        self._commit = harness.store.commit
        harness.store.commit = self.commit  # type: ignore[assignment, method-assign] # fails where told, else the real one

    async def commit(self, move: Move) -> Committed:
        if move.conversation_id in self.failing:
            self.failing.discard(move.conversation_id)
            raise StorageError("The disk is full.")
        return await self._commit(move)

    def follow(self, update: Update) -> None:
        if isinstance(update, StateChanged) and isinstance(update.state, AwaitingSubagents | Cancelling):
            self.seen.append(update.state)
        if isinstance(update, MessageSaved) and update.message.role is Role.ASSISTANT:
            self.said += 1

    async def run(self) -> None:
        await self.parent.subscribe(self.follow)
        await self.parent.say("begin")
        for name, number in self.plan.deeds:
            await self.do(name, number)
        for gate in self.fates.gates:
            gate.set()
        await self.end()

    async def do(self, name: str, number: int) -> None:
        agent_id = self.agent(number)
        match name:
            case "go":
                self.fates.gates[number].set()
            case "stop" if agent_id:
                self.sub_agents.stop((agent_id,))
            case "hint" if agent_id:
                self.hinted = True
                self.hints.append(asyncio.create_task(self.hint(agent_id)))
            case "time" if agent_id:
                self.time_is_up(agent_id)
            case "break" if agent_id:
                self.failing.add(agent_id)
            case "break parent" if agent_id:
                self.broke_parent = True
                self.failing.add(self.parent.id)
            case "esc":
                self.escaped = True
                self.parent.cancel()
                self.said_before_esc = None if self.parent.loop.moving else self.said
            case _:
                pass
        await spin(number * 3 if name == "spin" else 1)

    def agent(self, number: int) -> str:
        views = self.sub_agents.views(self.parent.id)
        return views[number].id if number < len(views) else ""

    async def hint(self, agent_id: str) -> None:
        with suppress(StorageError, EngineError):
            await self.sub_agents.hint(agent_id, MORE)

    def time_is_up(self, agent_id: str) -> None:
        """Act as the timer of a run, which only goes off during one."""
        conversation = next((one for one in self.harness.engine.live() if one.id == agent_id), None)
        if conversation is not None and not isinstance(conversation.state, Idle | Completed | Failed | Errored):
            conversation._session.moves.limit.expire()

    async def end(self) -> None:
        """Stop all hanging work; then everything comes to rest."""
        await asyncio.gather(*self.hints)
        await self.rest()
        self.failing.clear()
        if isinstance(self.parent.state, Errored):
            await self.parent.retry()
            await self.rest()

    async def rest(self) -> None:
        """Wait until all is idle, and stop hanging ones."""
        resting = asyncio.create_task(self.settle())
        while not resting.done():
            for number, fate in enumerate(self.plan.fates):
                if fate is Fate.HANGS and (agent_id := self.agent(number)):
                    self.sub_agents.stop((agent_id,))
            await asyncio.wait((resting,), timeout=0.02)
        resting.result()

    async def settle(self) -> None:
        await self.parent.wait_idle()
        await self.sub_agents.wait_finished(self.parent.id)
        await self.parent.wait_idle()

    async def check(self) -> None:
        rows = list(await self.harness.store.agents.rows(self.parent.id))
        assert isinstance(self.parent.state, Idle), self.parent.state
        assert [type(row.state) for row in rows if not isinstance(row.state, Completed | Failed)] == []
        assert all(row.outcome is not None for row in rows)
        assert self.fates.faults == []
        for one in (self.parent.id, *(row.id for row in rows)):
            assert unanswered(await self.harness.store.messages(one)) == []
        for state in self.seen:
            ids = [agent.id for agent in state.agents]
            assert sorted([*state.pending, *(outcome.agent_id for outcome in state.outcomes)]) == sorted(ids)
        assert (self.sub_agents.at_work(self.parent.id), self.fates.open) == (0, 0)
        line = self.sub_agents._scheduler._queue
        assert (line._out, line._waiting, self.sub_agents._scheduler.everyone()) == (set(), [], []), "no place is kept"
        if not any(name.startswith("break") for name, _ in self.plan.deeds):
            unread = [row.outcome for row in rows if await self.harness.store.agents.waiting(row.id)]
            assert all(one is not None and one.status is AgentStatus.CANCELLED for one in unread), "a lost hint"
            if self.said_before_esc is not None and not self.hinted:
                assert self.said == self.said_before_esc, "a turn began behind Esc"
            await self.check_nothing_lost(rows)
        if not self.plan.background and rows:
            await self.check_aggregate(rows)

    async def check_nothing_lost(self, rows: Sequence[AgentRow]) -> None:
        """Check that the results are in the parent, at the latest once its user writes again."""
        if await self.harness.store.agents.waiting(self.parent.id):
            await self.parent.say("and now")
            await self.settle()
        told = "\n".join(words(one.blocks) for one in await self.harness.store.messages(self.parent.id))
        found = [row.outcome.text for row in rows if row.outcome and row.outcome.status is AgentStatus.SUCCESS]
        assert [text for text in found if text not in told] == [], "a lost result"

    async def check_aggregate(self, rows: Sequence[AgentRow]) -> None:
        told = [
            words((block,))
            for message in await self.harness.store.messages(self.parent.id)
            for block in message.blocks
            if isinstance(block, ToolResultBlock)
        ]
        found = [text for text in told if "Sub-agent results (" in text]
        disturbed = self.escaped or self.broke_parent
        assert len(found) == 1 or (disturbed and not found), told
        if not disturbed and not self.hinted:
            tasks = [AgentTask(row.id, row.facts.task) for row in rows]
            assert found == [agent_texts.aggregate(tasks, [row.outcome for row in rows if row.outcome is not None])]
        for text in found:
            headings = re.findall(r"^## (\d+)\. (TASK \d+) — (success|failed: .+) \[(.+)\]$", text, re.MULTILINE)
            assert [(int(place), task, agent_id) for place, task, _, agent_id in headings] == [
                (row.facts.ordinal, f"TASK {row.facts.ordinal - 1}", row.id) for row in rows
            ]
            succeeded = sum(ended == "success" for _, _, ended, _ in headings)
            assert f"Sub-agent results ({succeeded} of {len(rows)} succeeded):" in text


async def spin(turns: int) -> None:
    """Let the loop make some turns, with the threads of the store let in between."""
    for _ in range(turns * 20):
        await asyncio.sleep(0)


async def carry_out(plan: Plan, home: Path) -> None:
    fates = Fates(plan.fates, plan.sequential, plan.background, plan.beside)
    limits = EngineSettings(max_agents=plan.room, agent_turns=3)
    async with asyncio.timeout(SECONDS), engine_harness(home, settings=limits, provider=fates) as harness:
        world = World(plan, harness, fates, await harness.conversation())
        await world.run()
        await world.check()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left


@pytest.mark.slow
@settings(
    max_examples=24,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)
@given(plans())
def test_nothing_is_lost_told_twice_or_left_running(plan: Plan) -> None:
    event(f"{len(plan.fates)} agents")
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(carry_out(plan, Path(home)))
