"""Ends of sub-agents in the store: delivered once, found after a takeover, and only the last one counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.machine.effects import FinishRun, RunStatus, StartRun
from engine.machine.messages import NewMessage, Origin, Role, TextBlock, ToolCall
from engine.machine.states import AgentTask, AwaitingSubagents, Completed, Failed, Idle, Run, ToolRound
from engine.ports import AppendMessage
from engine.records import AgentFacts, NewConversation, SpawnMode
from engine.store import Store, StorePaths, open_store
from tests.support.storage import asking, move, new_conversation, new_id, reply


async def family(store: Store, mode: SpawnMode) -> tuple[str, str]:
    """A parent and its sub-agent, both owned by this process."""
    parent = (await store.create(new_conversation(), 1.0)).id
    facts = AgentFacts(parent, mode, "t1", 1, "look")
    (agent,) = await store.agents.create_all([NewConversation(new_id(), Path("/tmp"), "demo/guide", agent=facts)], 1.0)
    return parent, agent.id


def notice(text: str) -> AppendMessage:
    return AppendMessage(NewMessage(new_id(), Role.SYSTEM, Origin.NOTICE, (TextBlock(text),)))


@pytest.fixture
def paths(tmp_path: Path) -> StorePaths:
    return StorePaths.under(tmp_path / "phoenix")


async def test_a_notice_after_the_end_is_no_second_end(paths: StorePaths) -> None:
    store = await open_store(paths)
    parent, agent = await family(store, SpawnMode.BACKGROUND)
    await store.commit(move(agent, state=Failed(2, "cancelled", "cancelled")))
    await store.commit(move(agent, notice("3 processes ended late"), state=Failed(2, "cancelled", "cancelled")))
    assert await store.agents.waiting(parent) == 1
    await store.close()


@pytest.mark.parametrize(
    ("state", "wakes"),
    [
        (Completed(2, "found"), True),
        (Failed(2, "timeout", "timed out"), True),
        (Failed(2, "cancelled", "cancelled"), False),
    ],
)
async def test_the_end_of_one_that_was_stopped_wakes_nobody(
    paths: StorePaths, state: Completed | Failed, wakes: bool
) -> None:
    store = await open_store(paths)
    parent, agent = await family(store, SpawnMode.BACKGROUND)
    await store.commit(move(agent, state=state))
    assert (await store.agents.waiting(parent), await store.agents.wakes(parent)) == (1, wakes)
    await store.commit(move(agent, state=Idle(3)))
    await store.commit(move(agent, state=Failed(4, "cancelled", "cancelled")))
    assert (await store.agents.waiting(parent), await store.agents.wakes(parent)) == (2, wakes), "each as it ended"
    await store.close()


async def test_whoever_takes_over_a_parent_finds_its_agents_at_rest(paths: StorePaths, tmp_path: Path) -> None:
    store = await open_store(paths)
    parent, agent = await family(store, SpawnMode.FAN_IN)
    call = ToolCall("t1", "spawn_agents", "{}")
    waiting = AwaitingSubagents(2, Run("r", 250), ToolRound("m", call), (AgentTask(agent, "look"),))
    await store.commit(move(parent, state=waiting))
    left = StorePaths.under(tmp_path / "left")
    shutil.copytree(store.path.parent, left.database.parent, ignore=shutil.ignore_patterns("*.lock"))
    await store.close()
    after = await open_store(left)
    await after.take(parent)
    row = await after.agents.row(agent)
    assert row is not None
    assert row.state == Failed(1, "interrupted", "interrupted")
    record = await after.conversation(parent)
    assert record is not None
    assert record.state == Idle(3)
    await after.close()


async def test_one_that_never_began_has_ended_at_the_next_start(paths: StorePaths) -> None:
    store = await open_store(paths)
    _, agent = await family(store, SpawnMode.FAN_IN)
    await store.close()
    after = await open_store(paths)
    await after.recover_all()
    row = await after.agents.row(agent)
    assert row is not None
    assert row.outcome is not None
    assert row.outcome.reason == "interrupted"
    assert await after.agents.waiting(agent) == 1, "its task, for when it is told to go on"
    assert await after.recover_all() == []
    await after.close()


async def test_what_is_kept_of_a_failure_is_of_its_last_run(paths: StorePaths) -> None:
    store = await open_store(paths)
    _, agent = await family(store, SpawnMode.BACKGROUND)
    first, second = new_id(), new_id()
    await store.commit(move(agent, StartRun(first), state=asking(first)))
    said = reply(TextBlock("early words"), run_id=first)
    ended = FinishRun(first, RunStatus.SUCCESS, 1)
    await store.commit(move(agent, said, ended, state=Completed(2, "found")))
    await store.commit(move(agent, StartRun(second), state=asking(second, 3)))
    stopped = FinishRun(second, RunStatus.CANCELLED, 1)
    await store.commit(move(agent, stopped, state=Failed(4, "cancelled", "cancelled")))
    row = await store.agents.row(agent)
    assert row is not None
    assert row.outcome is not None
    assert (row.outcome.text, row.outcome.reason) == ("", "cancelled")
    await store.close()
