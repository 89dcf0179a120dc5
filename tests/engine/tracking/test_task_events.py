"""Events of the task board: one for each task that a reply or the user changes (SPEC SDK-20)."""

from __future__ import annotations

import json
from pathlib import Path

from engine.records.tracked_tasks import TaskStatus
from tests.support.engine import engine_harness
from tests.support.storage import query
from tests.support.tracking import BY_HAND, FINISH, agent, append, insert, say


def told(path: Path) -> list[tuple[int, str, str, bool]]:
    """Order, description, status and removal of each changed task, in the order of the stream."""
    rows = query(path, "SELECT payload_json FROM events WHERE type = 'tracked_task.changed' ORDER BY seq")
    found = [json.loads(str(row[0])) for row in rows]
    return [(one["order"], one["description"], one["status"], one["removed"]) for one in found]


async def test_each_change_of_a_task_is_one_event_with_the_task_as_it_is_then(tmp_path: Path) -> None:
    provider = agent([insert(0, "second"), insert(0, "first")], [append(1, 1, 2), FINISH])
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await say(conversation, "do both")
        await harness.engine.tasks.flush(conversation.id)
        made = [(1, "first", "pending", False), (2, "second", "pending", False), (1, "first", "running", False)]
        assert told(harness.store.path) == made
        view = await harness.engine.tasks.board(conversation.id)
        await harness.engine.tasks.edit(conversation.id, view.tasks[0].id, TaskStatus.SUCCESS)
        await harness.engine.tasks.edit(conversation.id, view.tasks[0].id, TaskStatus.SUCCESS)
        await harness.engine.tasks.remove(conversation.id, view.tasks[0].id)
        by_user = [(1, "first", "success", False), (1, "first", "success", True)]
        assert told(harness.store.path) == made + by_user


async def test_a_refused_reply_leaves_no_event(tmp_path: Path) -> None:
    provider = agent([insert(0, "first"), append(7, 1)])
    async with engine_harness(tmp_path, provider=provider, settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await say(conversation, "do it")
        status = await harness.engine.tasks.flush(conversation.id)
        assert (status.failed, told(harness.store.path)) == (2, [])
