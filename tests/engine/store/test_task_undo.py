"""A removed task comes back as it was: place, texts, times and the messages that no other task took."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.ports.task_store import (
    AddPreference,
    AppendMessages,
    BoardChange,
    InsertTask,
    TaskRefused,
    UpdateTask,
)
from engine.records.tracked_tasks import TaskStatus
from engine.store import Store
from engine.store.tasks import BOARD_FULL, MOST_TASKS
from tests.support.storage import move, new_conversation, query, say
from tests.support.tracking import plain

BOARD: tuple[BoardChange, ...] = (
    InsertTask(0, "A"),
    InsertTask(1, "B"),
    InsertTask(2, "C"),
    AppendMessages(2, (1, 2), "halfway", "Prefers tabs."),
    UpdateTask(2, TaskStatus.FAILED),
)


async def tracked(store: Store) -> str:
    """Three tasks; the second one has failed, with two of three messages."""
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(replace(move(conversation_id, *(say(f"message {n}") for n in range(3))), tracking="pending"))
    await store.tasks.take(conversation_id, 3, 2.0)
    await store.tasks.apply(conversation_id, (1, 2, 3), BOARD, (), 5.0, ends=True)
    return conversation_id


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_task_comes_back_at_its_place_with_all_it_had(store: Store, place: int) -> None:
    conversation_id = await tracked(store)
    before = await store.tasks.board(conversation_id)
    removed = await store.tasks.remove(conversation_id, before.tasks[place].id, 6.0)
    assert removed == before.tasks[place]
    assert await store.tasks.put_back(conversation_id, removed, 7.0) == removed
    assert await store.tasks.board(conversation_id) == before
    events = "SELECT json_extract(payload_json, '$.removed'), ts FROM events WHERE type = 'tracked_task.changed'"
    assert query(store.path, f"{events} AND ts > 5 ORDER BY seq") == [(1, 6.0), (0, 7.0)]


async def test_messages_that_another_task_took_stay_there(store: Store) -> None:
    conversation_id = await tracked(store)
    removed = await store.tasks.remove(conversation_id, (await store.tasks.board(conversation_id)).tasks[1].id, 6.0)
    await store.tasks.apply(conversation_id, (1,), (AppendMessages(1, (1,)),), (), 7.0)
    await store.tasks.put_back(conversation_id, removed, 8.0)
    view = await store.tasks.board(conversation_id)
    assert [plain(task) for task in view.tasks] == [
        (1, "A", "running", (1,)),
        (2, "B", "failed", (2,)),
        (3, "C", "pending", ()),
    ]


async def test_a_place_that_is_gone_is_the_end_and_a_second_time_changes_nothing(store: Store) -> None:
    conversation_id = await tracked(store)
    first, second, third = (await store.tasks.board(conversation_id)).tasks
    for task in (first, second, third):
        await store.tasks.remove(conversation_id, task.id, 6.0)
    assert (await store.tasks.put_back(conversation_id, third, 7.0)).order == 1
    assert (await store.tasks.put_back(conversation_id, third, 8.0)).order == 1
    assert [plain(task) for task in (await store.tasks.board(conversation_id)).tasks] == [(1, "C", "pending", ())]


async def test_a_full_board_and_the_planning_section_are_refused(store: Store) -> None:
    conversation_id = await tracked(store)
    removed = await store.tasks.remove(conversation_id, (await store.tasks.board(conversation_id)).tasks[0].id, 6.0)
    await store.tasks.apply(conversation_id, (), [InsertTask(0, "x")] * (MOST_TASKS - 2), (), 7.0)
    with pytest.raises(TaskRefused) as refused:
        await store.tasks.put_back(conversation_id, removed, 8.0)
    assert str(refused.value) == BOARD_FULL
    await store.tasks.apply(conversation_id, (), (AddPreference("Prefers tabs."),), (), 9.0)
    planning = (await store.tasks.board(conversation_id)).planning
    assert planning is not None
    gone = await store.tasks.remove(conversation_id, planning.id, 10.0)
    with pytest.raises(TaskRefused, match="planning section cannot be put back"):
        await store.tasks.put_back(conversation_id, gone, 11.0)
