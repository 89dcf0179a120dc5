"""Each change of a message's progress is an event in the same transaction, and keeps its reason (SPEC SDK-20)."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.ports import ConversationChanges, StorageError
from engine.ports.task_store import AppendMessages, BoardChange, InsertTask, MessageTracking
from engine.store import Store, StorePaths, open_store
from engine.store.tasks import LONGEST_PROBLEM
from tests.support.engine import engine_harness
from tests.support.storage import move, new_conversation, query, say
from tests.support.tracking import BY_HAND, FINISH, agent, append, insert, progress_events
from tests.support.tracking import say as send


async def waiting(store: Store, count: int = 2) -> str:
    """A conversation with messages that wait."""
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(replace(move(conversation_id, *(say(f"message {n}") for n in range(count))), tracking="pending"))
    return conversation_id


def times(path: Path) -> list[float]:
    return [
        float(str(ts)) for (ts,) in query(path, "SELECT ts FROM events WHERE type = 'message.updated' ORDER BY seq")
    ]


async def test_a_pass_reports_each_message_as_running_and_as_recorded(tmp_path: Path) -> None:
    async with engine_harness(
        tmp_path, provider=agent([insert(0, "A"), append(1, 1)], [append(1, 2), FINISH]), settings=BY_HAND
    ) as harness:
        conversation = await harness.conversation()
        await send(conversation, "first")
        assert progress_events(harness.store.path) == {1: [], 2: []}
        await harness.engine.tasks.flush(conversation.id)
        assert progress_events(harness.store.path) == {1: ["running", "success"], 2: ["running", "success"]}


async def test_messages_of_a_failed_pass_report_the_failure_and_the_next_try(tmp_path: Path) -> None:
    refused = [append(7, 1)]
    async with engine_harness(
        tmp_path, provider=agent(refused, [insert(0, "A"), append(1, 1, 2), FINISH]), settings=BY_HAND
    ) as harness:
        conversation = await harness.conversation()
        await send(conversation, "first")
        await harness.engine.tasks.flush(conversation.id)
        assert progress_events(harness.store.path)[2] == ["running", "failed"]
        await harness.engine.tasks.flush(conversation.id)
        assert progress_events(harness.store.path)[2] == ["running", "failed", "pending", "running", "success"]


async def test_switching_tracking_off_reports_messages_that_wait_no_longer(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, provider=agent(), settings=BY_HAND) as harness:
        conversation = await harness.conversation()
        await send(conversation, "first")
        await harness.engine.tasks.set_tracking(conversation.id, on=False)
        assert progress_events(harness.store.path) == {1: ["disabled"], 2: ["disabled"]}


async def test_a_closed_conversation_reports_them_too_once_each_in_the_order_of_messages(store: Store) -> None:
    conversation_id = await waiting(store, 12)
    await store.tasks.take(conversation_id, 2, 3.0)
    await store.change(conversation_id, ConversationChanges(tracking=False), 5.0)
    await store.change(conversation_id, ConversationChanges(tracking=False), 6.0)
    assert progress_events(store.path) == {1: ["running", "disabled"], 2: ["running", "disabled"]} | {
        seq: ["disabled"] for seq in range(3, 13)
    }
    assert times(store.path) == [3.0] * 2 + [5.0] * 12
    order = """SELECT m.seq FROM events AS e JOIN messages AS m ON m.id = e.message_id
        WHERE e.type = 'message.updated' AND e.ts = 3.0 ORDER BY e.seq"""
    assert query(store.path, order) == [(1,), (2,)]


async def test_a_message_that_two_replies_link_is_reported_once(store: Store) -> None:
    conversation_id = await waiting(store)
    await store.tasks.take(conversation_id, 2, 3.0)
    first: tuple[BoardChange, ...] = (InsertTask(0, "A"), AppendMessages(1, (1,)))
    await store.tasks.apply(conversation_id, (1, 2), first, (), 4.0)
    await store.tasks.apply(conversation_id, (1, 2), (AppendMessages(1, (1,)),), (), 5.0, ends=True)
    assert progress_events(store.path) == {1: ["running", "success"], 2: ["running", "success"]}
    assert times(store.path) == [3.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("work", ["take", "apply", "settle", "switch off"])
async def test_a_progress_whose_event_cannot_be_stored_does_not_change(store: Store, work: str) -> None:
    conversation_id = await waiting(store)
    if work != "take":
        await store.tasks.take(conversation_id, 2, 3.0)
    before = query(store.path, "SELECT seq, task_process_status FROM messages ORDER BY seq")
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(
            """CREATE TRIGGER refused BEFORE INSERT ON events WHEN NEW.type = 'message.updated'
                BEGIN SELECT RAISE(ABORT, 'refused'); END"""
        )
    jobs: dict[str, Callable[[], Awaitable[object]]] = {
        "take": lambda: store.tasks.take(conversation_id, 2, 4.0),
        "apply": lambda: store.tasks.apply(conversation_id, (1, 2), (), (), 4.0, ends=True),
        "settle": lambda: store.tasks.settle(conversation_id, MessageTracking.FAILED, 4.0),
        "switch off": lambda: store.change(conversation_id, ConversationChanges(tracking=False), 4.0),
    }
    with pytest.raises(StorageError):
        await jobs[work]()
    assert query(store.path, "SELECT seq, task_process_status FROM messages ORDER BY seq") == before
    assert times(store.path) == ([] if work == "take" else [3.0, 3.0])


async def test_recovery_reports_messages_that_wait_again(store: Store, paths: StorePaths) -> None:
    conversation_id = await waiting(store)
    await store.tasks.take(conversation_id, 1, 3.0)
    await store.release(conversation_id)
    other = await open_store(paths)
    await other.take(conversation_id)
    await other.close()
    assert progress_events(store.path) == {1: ["running", "pending"], 2: []}


async def test_a_reason_is_stored_cut_and_in_valid_text(store: Store) -> None:
    conversation_id = await waiting(store, 1)
    await store.tasks.take(conversation_id, 1, 2.0)
    await store.tasks.settle(conversation_id, MessageTracking.FAILED, 3.0, problem="\udc00" + "x" * 5_000)
    problem = (await store.tasks.status(conversation_id)).problem
    assert (len(problem), problem[-1]) == (LONGEST_PROBLEM, "x")
    problem.encode()


async def test_a_reason_without_a_message_it_is_about_is_not_shown(store: Store) -> None:
    conversation_id = await waiting(store, 1)
    await store.tasks.take(conversation_id, 1, 2.0)
    await store.tasks.settle(conversation_id, MessageTracking.FAILED, 3.0, problem="The model is gone.")
    assert (await store.tasks.status(conversation_id)).problem == "The model is gone."
    await store.tasks.settle(conversation_id, MessageTracking.SUCCESS, 4.0, of=MessageTracking.FAILED)
    assert (await store.tasks.status(conversation_id)).problem == ""
