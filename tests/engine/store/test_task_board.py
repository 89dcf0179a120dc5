"""The task board: changes, their undoing, and their events."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.machine.messages import ToolUseBlock
from engine.ports import ConversationChanges, StorageError
from engine.ports.task_store import (
    AddPreference,
    AddProgress,
    AppendMessages,
    AppendToPlanning,
    BoardChange,
    InsertTask,
    MessageTracking,
    TaskRefused,
    UpdateTask,
)
from engine.records.tracked_tasks import TaskStatus, TrackingStatus
from engine.store import Store, StorePaths, open_store
from engine.store.migrations import migrate
from engine.store.tasks import BOARD_FULL, LONGEST_PROBLEM, MOST_LINES, MOST_TASKS, BoardWriter, read_board, remove_task
from engine.tracking.task_agent import call_of
from tests.support.engine import engine_harness
from tests.support.storage import move, new_conversation, query, say
from tests.support.tracking import BY_HAND, FINISH, agent, append, call, insert, plain, progress_events
from tests.support.tracking import say as send


async def with_messages(store: Store, count: int = 3) -> str:
    """A conversation whose messages 1 to `count` are in a pass."""
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(replace(move(conversation_id, *(say(f"message {n}") for n in range(count))), tracking="pending"))
    assert (await store.tasks.take(conversation_id, 32, 2.0)).seqs == tuple(range(1, count + 1))
    return conversation_id


async def change(store: Store, conversation_id: str, *changes: BoardChange, seqs: Sequence[int] = (1, 2, 3)) -> None:
    await store.tasks.apply(conversation_id, seqs, changes, (), 5.0)


async def tasks(store: Store, conversation_id: str) -> list[tuple[int, str, str]]:
    view = await store.tasks.board(conversation_id)
    return [(task.order, task.description, task.status.value) for task in view.tasks]


async def refusal(store: Store, conversation_id: str, one: BoardChange) -> str:
    before = await store.tasks.board(conversation_id)
    with pytest.raises(TaskRefused) as refused:
        await change(store, conversation_id, one)
    assert await store.tasks.board(conversation_id) == before, "nothing of it holds"
    return str(refused.value)


ABC = (InsertTask(0, "A"), InsertTask(1, "B"), InsertTask(2, "C"))


async def test_t_tsk_1_an_inserted_task_moves_those_behind_it(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, *ABC)
    await change(store, conversation_id, InsertTask(1, "X"))
    order = [(1, "A", "pending"), (2, "X", "pending"), (3, "B", "pending"), (4, "C", "pending")]
    assert await tasks(store, conversation_id) == order
    await change(store, conversation_id, InsertTask(0, "front"))
    assert [description for _, description, _ in await tasks(store, conversation_id)] == ["front", "A", "X", "B", "C"]


async def test_t_tsk_2_appended_messages_let_a_task_run_unless_it_has_ended(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, *ABC, AppendMessages(1, (1,)))
    assert (await tasks(store, conversation_id))[0] == (1, "A", "running")
    await change(store, conversation_id, AppendMessages(1, (2,)))
    assert (await tasks(store, conversation_id))[0] == (1, "A", "running")
    for status in (TaskStatus.SUCCESS, TaskStatus.FAILED):
        await change(store, conversation_id, UpdateTask(1, status))
        text = await refusal(store, conversation_id, AppendMessages(1, (3,), "more"))
        assert text == f"Task 1 has the status '{status}'. Update its status to 'running' first."
    await change(store, conversation_id, UpdateTask(1, TaskStatus.RUNNING), AppendMessages(1, (3,)))
    (first, *_) = (await store.tasks.board(conversation_id)).tasks
    assert first.message_seqs == (1, 2, 3)


def test_t_tsk_3_a_range_names_its_messages_and_must_rise() -> None:
    ids = frozenset({1, 2, 3})

    def ranged(*bounds: int) -> object:
        made = call("append_messages_to_task", task_order=1, message_range=list(bounds))
        return call_of(ToolUseBlock("c", made.name, made.input_json), ids)

    assert ranged(1, 3) == AppendMessages(1, (1, 2, 3))
    for bounds, text in {
        (3, 1): "message_range must have two ids, the smaller one first.",
        (1,): "message_range must have two ids, the smaller one first.",
        (1, 9): "Message 9 is out of range; only the current messages can be linked.",
    }.items():
        with pytest.raises(TaskRefused) as refused:
            ranged(*bounds)
        assert str(refused.value) == f"append_messages_to_task: {text}"


@pytest.mark.parametrize("order", [0, 4, -1, 1 << 40])
async def test_t_tsk_3_an_order_that_is_not_there_is_out_of_range(store: Store, order: int) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, *ABC, AppendToPlanning((1,)))
    for one in (AppendMessages(order, (1,)), UpdateTask(order, TaskStatus.RUNNING), AddProgress(order, "done")):
        text = await refusal(store, conversation_id, one)
        assert text == f"Task {order} is out of range; the board has tasks 1 to 3."
    if order:
        text = await refusal(store, conversation_id, InsertTask(order, "late"))
        assert text == f"Task {order} is out of range; a task can be inserted after 0 to 3."


async def test_t_tsk_5_the_planning_section_is_made_once_and_not_listed(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, InsertTask(0, "A"), AppendToPlanning((1,)), AddPreference("Prefers tabs."))
    await change(store, conversation_id, AppendToPlanning((2,)), AddPreference("Prefers tests."))
    await change(store, conversation_id, AddPreference("Prefers speed."), AddPreference("Prefers tabs."))
    view = await store.tasks.board(conversation_id)
    assert view.planning is not None
    assert (view.planning.order, view.planning.is_planning, view.planning.message_seqs) == (0, True, (1, 2))
    assert view.planning.preferences == ("Prefers tabs.", "Prefers tests.", "Prefers speed.")
    assert [task.order for task in view.tasks] == [1]
    assert [task.order for task in (await store.tasks.page(conversation_id, "", 20, newest_first=False)).tasks] == [1]


@pytest.mark.parametrize("text", ["", "  \n", "\u200b\x1b[0m"])
async def test_t_tsk_6_an_empty_progress_or_preference_is_refused(store: Store, text: str) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, InsertTask(0, "A"))
    empty = "The progress is empty; say what was reached."
    assert await refusal(store, conversation_id, AddProgress(1, text)) == empty
    assert await refusal(store, conversation_id, AppendMessages(1, (1,), text)) == empty
    wanted = "The preference is empty; say what the user prefers."
    assert await refusal(store, conversation_id, AddPreference(text)) == wanted
    assert await refusal(store, conversation_id, AppendMessages(1, (1,), None, text)) == wanted
    assert await refusal(store, conversation_id, InsertTask(0, text)) == "A task needs a description."


async def test_t_tsk_7_a_removed_task_leaves_its_messages_and_closes_the_gap(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, *ABC, AppendMessages(2, (1, 2)), AppendMessages(3, (3,)))
    second = (await store.tasks.board(conversation_id)).tasks[1]
    await store.tasks.remove(conversation_id, second.id, 6.0)
    assert await tasks(store, conversation_id) == [(1, "A", "pending"), (2, "C", "running")]
    assert query(store.path, "SELECT tracked_task_id FROM messages WHERE seq < 3") == [(None,), (None,)]
    assert await store.tasks.read_untasked(conversation_id) == (1, 2)
    with pytest.raises(TaskRefused, match="no longer on the board"):
        await store.tasks.remove(conversation_id, second.id, 6.0)


async def test_t_tsk_10_two_conversations_do_not_see_each_other(store: Store) -> None:
    one, other = await with_messages(store), await with_messages(store)
    await change(store, one, *ABC, AppendMessages(1, (1,)))
    await change(store, other, InsertTask(0, "other"))
    assert await tasks(store, other) == [(1, "other", "pending")]
    assert await refusal(store, other, UpdateTask(2, TaskStatus.RUNNING))
    first = (await store.tasks.board(one)).tasks[0]
    with pytest.raises(TaskRefused, match="no longer on the board"):
        await store.tasks.edit(other, first.id, TaskStatus.FAILED, None, 6.0)
    assert (await tasks(store, one))[0] == (1, "A", "running")


async def test_one_impossible_change_undoes_all_of_its_reply(store: Store) -> None:
    conversation_id = await with_messages(store)
    with pytest.raises(TaskRefused):
        await change(store, conversation_id, *ABC, AppendMessages(1, (1,)), UpdateTask(9, TaskStatus.RUNNING))
    assert await tasks(store, conversation_id) == []
    assert await store.tasks.status(conversation_id) == TrackingStatus(running=3)


async def test_only_messages_of_the_pass_can_be_linked(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, InsertTask(0, "A"), seqs=(1, 2))
    with pytest.raises(TaskRefused, match="Message 3 is out of range"):
        await change(store, conversation_id, AppendMessages(1, (2, 3)), seqs=(1, 2))
    with pytest.raises(TaskRefused, match="at least one message"):
        await change(store, conversation_id, AppendMessages(1, ()), seqs=(1, 2))


async def test_linked_messages_have_succeeded_with_the_reply_and_the_others_with_its_end(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, InsertTask(0, "A"), AppendMessages(1, (1,)))
    assert await store.tasks.status(conversation_id) == TrackingStatus(success=1, running=2)
    await store.tasks.apply(conversation_id, (1, 2, 3), (), (), 6.0, ends=True)
    assert await store.tasks.status(conversation_id) == TrackingStatus(success=3)


async def test_the_user_edits_status_and_words_of_a_task(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, *ABC, AddPreference("Prefers tabs."))
    view = await store.tasks.board(conversation_id)
    assert view.planning is not None
    first = view.tasks[0]
    edited = await store.tasks.edit(conversation_id, first.id, TaskStatus.SUCCESS, "  A\nand\x1b[31m more  ", 9.0)
    assert (edited.status, edited.description, edited.updated_at) == (TaskStatus.SUCCESS, "A and more", 9.0)
    assert await store.tasks.edit(conversation_id, first.id, None, None, 10.0) == edited
    for task_id, words, text in (
        (first.id, " ", "A task needs a description."),
        (view.planning.id, "x", "The planning section has neither a status nor a description."),
    ):
        with pytest.raises(TaskRefused) as refused:
            await store.tasks.edit(conversation_id, task_id, None, words, 10.0)
        assert str(refused.value) == text


async def test_pages_go_through_all_tasks_by_time_of_creation(store: Store) -> None:
    conversation_id = await with_messages(store)
    for number in range(45):
        await store.tasks.apply(conversation_id, (), (InsertTask(0, f"task {number}"),), (), float(number // 2))
    for newest_first in (False, True):
        seen: list[str] = []
        cursor = ""
        while True:
            page = await store.tasks.page(conversation_id, cursor, 20, newest_first=newest_first)
            seen += [task.id for task in page.tasks]
            cursor = page.cursor
            if not cursor:
                break
        assert len(seen) == len(set(seen)) == 45
        created = [float(n // 2) for n in range(45)]
        by_id = {task.id: task.created_at for task in (await store.tasks.board(conversation_id)).tasks}
        assert [by_id[one] for one in seen] == sorted(created, reverse=newest_first)


@pytest.mark.parametrize("cursor", ["x", "é", "A" * 10_000, "bm9wZXxpZA==", "bmFufGlk"])
async def test_a_cursor_of_nowhere_is_refused_or_an_empty_page(store: Store, cursor: str) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, *ABC)
    try:
        page = await store.tasks.page(conversation_id, cursor, 20, newest_first=False)
    except TaskRefused as refused:
        assert str(refused) == "This page of the task board no longer exists; begin again at the first one."
    else:
        assert len(page.tasks) <= 3
    for limit in (0, 201, -5):
        with pytest.raises(TaskRefused, match="1 to 200 tasks"):
            await store.tasks.page(conversation_id, "", limit, newest_first=False)


async def test_texts_are_one_clean_line_of_bounded_length_and_a_board_has_bounded_tasks(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(
        store, conversation_id, InsertTask(0, "a\x1b]0;title\x07\nb" + "x" * 1_000_000), AddProgress(1, "y" * 400)
    )
    (task,) = (await store.tasks.board(conversation_id)).tasks
    assert (len(task.description), task.description[:3], task.description[-1]) == (500, "a b", "…")
    assert len(task.progresses[0]) == 150
    await change(store, conversation_id, *(AddProgress(1, f"step {n}") for n in range(500)))
    (task,) = (await store.tasks.board(conversation_id)).tasks
    assert (len(task.progresses), task.progresses[-1]) == (MOST_LINES, "step 499")
    await change(store, conversation_id, *(InsertTask(0, f"task {n}") for n in range(MOST_TASKS - 1)))
    assert await refusal(store, conversation_id, InsertTask(0, "one more")) == (
        "The board is full: it has 100 tasks. Update one of them instead."
    )


async def test_a_row_whose_data_cannot_be_read_costs_its_texts_alone(store: Store) -> None:
    conversation_id = await with_messages(store)
    await change(store, conversation_id, *ABC)
    query(store.path, "UPDATE tracked_tasks SET data_json = '{' WHERE ord = 2")
    assert await tasks(store, conversation_id) == [(1, "A", "pending"), (2, "", "pending"), (3, "C", "pending")]


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 12), st.integers(1, 30)), max_size=40)


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_orders_stay_1_to_n_and_links_stay_with_their_task(steps: list[tuple[bool, int, int]]) -> None:
    """Any sequence of insertions, links and removals, against a plain list."""
    connection = _database()
    expected: list[tuple[str, set[int]]] = []
    for number, (inserts, place, seq) in enumerate(steps):
        writer = BoardWriter(connection, "c", frozenset(range(1, 31)), float(number))
        if inserts:
            after = place % (len(expected) + 1)
            writer.apply(InsertTask(after, f"task {number}"))
            expected.insert(after, (f"task {number}", set()))
            writer.apply(AppendMessages(after + 1, (seq,)))
            for _, seqs in expected:
                seqs.discard(seq)
            expected[after][1].add(seq)
        elif expected:
            gone = place % len(expected)
            remove_task(connection, "c", read_board(connection, "c").tasks[gone].id)
            del expected[gone]
        else:
            writer.apply(AppendToPlanning((seq,)))
        found = read_board(connection, "c").tasks
        assert [task.order for task in found] == list(range(1, len(expected) + 1))
        assert [(task.description, set(task.message_seqs)) for task in found] == expected
    connection.close()


def _database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(
        """INSERT INTO conversations (id, kind, title, cwd, model, permission_mode, system_prompt_static, state,
            state_json, gen, created_at, updated_at) VALUES ('c', 'user', '', '/tmp', 'm', 'ask', '', 'idle', '{}', 0,
            1, 1)"""
    )
    connection.execute("INSERT INTO turns (id, conversation_id, turn_number, started_at) VALUES ('t', 'c', 0, 1)")
    connection.executemany(
        """INSERT INTO messages (id, conversation_id, turn_id, seq, message_number, role, origin, content_json, text,
            created_at) VALUES (?, 'c', 't', ?, ?, 'user', 'human', '[]', '', 1)""",
        [(f"m{seq}", seq, seq) for seq in range(1, 31)],
    )
    return connection


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
