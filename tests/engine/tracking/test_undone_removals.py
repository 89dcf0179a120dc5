"""The user's removals of tasks are undone, the last one first, as long as the process lives."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.engine import Engine
from engine.executor.requests import EngineError
from engine.ports import StorageError
from engine.ports.task_store import TaskStore
from engine.records.tracked_tasks import TrackedTask
from engine.tracking.boards import NOTHING_REMOVED
from tests.support.engine import engine_harness
from tests.support.tracking import BY_HAND, FINISH, agent, append, board, insert, say

TWO = [(1, "A", "running", (1, 2)), (2, "B", "pending", ())]


async def test_removals_are_undone_in_reverse_order_also_of_a_closed_conversation(tmp_path: Path) -> None:
    provider = agent([insert(0, "B"), insert(0, "A"), append(1, 1, 2), FINISH])
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        conversation, tasks = await harness.conversation(), harness.engine.tasks
        await say(conversation, "do both")
        await tasks.flush(conversation.id)
        for _ in TWO:
            (first, *_) = (await tasks.board(conversation.id)).tasks
            await tasks.remove(conversation.id, first.id)
        assert (await tasks.untasked(conversation.id)) == (1, 2)
        assert (await tasks.put_back(conversation.id)).description == "B"
        await harness.engine.forget(conversation.id)
        assert (await tasks.put_back(conversation.id)).description == "A"
        assert await board(harness, conversation) == TWO
        with pytest.raises(EngineError) as refused:
            await tasks.put_back(conversation.id)
        assert str(refused.value) == NOTHING_REMOVED


class FullDisk:
    """A store of the task board that cannot put a task back once."""

    def __init__(self, tasks: TaskStore) -> None:
        self._tasks = tasks
        self.broken = True

    def __getattr__(self, name: str) -> object:
        return getattr(self._tasks, name)

    async def put_back(self, conversation_id: str, removed: TrackedTask, at: float) -> TrackedTask:
        if self.broken:
            raise StorageError("The disk is full.")
        return await self._tasks.put_back(conversation_id, removed, at)


async def test_an_undo_that_fails_can_be_tried_again(tmp_path: Path) -> None:
    provider = agent([insert(0, "B"), insert(0, "A"), append(1, 1, 2), FINISH])
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        store = FullDisk(harness.store.tasks)
        harness.engine = Engine(replace(harness.engine.ports, tasks=store), BY_HAND)
        conversation, tasks = await harness.conversation(), harness.engine.tasks
        await say(conversation, "do both")
        await tasks.flush(conversation.id)
        await tasks.remove(conversation.id, (await tasks.board(conversation.id)).tasks[0].id)
        with pytest.raises(StorageError, match="The disk is full"):
            await tasks.put_back(conversation.id)
        store.broken = False
        await tasks.put_back(conversation.id)
        assert await board(harness, conversation) == TWO
