"""The task board of forks, branches, exports and imports, and after a crash."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from copy import deepcopy
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.machine.messages import TextBlock
from engine.ports import ImportRefused, StorageError
from engine.ports.task_store import AddPreference, AppendMessages, AppendToPlanning, InsertTask, MessageTracking
from engine.records.tracked_tasks import TrackingStatus
from engine.store import Store, StorePaths, open_store
from engine.store.migrations import migrate
from engine.store.tasks import MOST_TASKS, list_pending, list_untasked, read_status, settle_tracking
from tests.support.storage import OUR_TERMS, move, new_conversation, reply, say
from tests.support.tracking import plain
from tools.contract import JsonObject

Tables = dict[str, list[dict[str, Any]]]


async def tracked(store: Store) -> str:
    """Messages 1 to 4: A has 1 and 2, C has 4, B none, the planning section 3; 5 waits."""
    conversation_id = (await store.create(new_conversation("Real"), 1.0)).id
    for number in range(1, 5):
        message = say(f"message {number}") if number % 2 else reply(TextBlock(f"message {number}"))
        made = move(conversation_id, message, at=float(number * 10))
        await store.commit(replace(made, tracking="pending"))
    seqs = (await store.tasks.take(conversation_id, 32, 2.0)).seqs
    first = (InsertTask(0, "A"), AppendMessages(1, (1, 2), "half of it"), InsertTask(1, "B"))
    await store.tasks.apply(conversation_id, seqs, first, (), 25.0)
    second = (AppendToPlanning((3,)), AddPreference("Prefers tabs."), InsertTask(2, "C"), AppendMessages(3, (4,)))
    await store.tasks.apply(conversation_id, seqs, second, (), 45.0, ends=True)
    await store.commit(replace(move(conversation_id, say("message 5"), at=50.0), tracking="pending"))
    return conversation_id


async def boards(store: Store, conversation_id: str) -> tuple[object, ...]:
    view = await store.tasks.board(conversation_id)
    planning = view.planning
    return [plain(task) for task in view.tasks], planning and (planning.message_seqs, planning.preferences), view.status


WHOLE = (
    [(1, "A", "running", (1, 2)), (2, "B", "pending", ()), (3, "C", "running", (4,))],
    ((3,), ("Prefers tabs.",)),
    TrackingStatus(success=4, pending=1),
)


async def test_a_fork_has_a_board_of_its_own_with_the_links(store: Store) -> None:
    source = await tracked(store)
    copy = (await store.library.fork(source, "copy", 99.0)).id
    assert await boards(store, copy) == await boards(store, source) == WHOLE
    for task in (await store.tasks.board(copy)).tasks:
        await store.tasks.remove(copy, task.id, 100.0)
    assert (await boards(store, source), (await store.tasks.board(copy)).tasks) == (WHOLE, ())


@pytest.mark.parametrize(
    ("up_to", "tasks", "planning"),
    [
        (2, [(1, "A", "running", (1, 2))], None),
        (3, [(1, "A", "running", (1, 2)), (2, "B", "pending", ())], ((3,), ("Prefers tabs.",))),
        (1, [(1, "A", "running", (1,))], None),
    ],
)
async def test_a_fork_up_to_a_message_has_what_was_there_then(
    store: Store, up_to: int, tasks: object, planning: object
) -> None:
    source = await tracked(store)
    copy = (await store.library.fork(source, "copy", 99.0, up_to)).id
    assert await boards(store, copy) == (tasks, planning, TrackingStatus(success=up_to))
    assert await boards(store, source) == WHOLE


async def test_a_copy_of_a_pass_under_way_waits_for_one_of_its_own(store: Store) -> None:
    source = await tracked(store)
    await store.tasks.take(source, 32, 2.0)
    copy = (await store.library.fork(source, "copy", 99.0)).id
    assert (await store.tasks.status(source)).running == 1
    assert (await store.tasks.status(copy)).pending == 1


async def test_recovery_lets_running_messages_wait_again_and_tracks_what_it_adds(
    store: Store, paths: StorePaths
) -> None:
    source = await tracked(store)
    await store.tasks.take(source, 32, 2.0)
    await store.release(source)
    other = await open_store(paths)
    await other.take(source)
    assert await other.tasks.status(source) == TrackingStatus(success=4, pending=1)
    await other.close()


async def test_a_conversation_of_another_process_is_not_processed(store: Store, paths: StorePaths) -> None:
    source = await tracked(store)
    other = await open_store(paths)
    before = await boards(store, source)
    for work in (other.tasks.take(source, 32, 2.0), other.tasks.apply(source, (1,), (InsertTask(0, "x"),), (), 9.0)):
        with pytest.raises(StorageError, match="no longer open in this Phoenix"):
            await work
    assert await boards(store, source) == before
    await store.release(source)
    with pytest.raises(StorageError, match="no longer open in this Phoenix"):
        await store.tasks.take(source, 32, 2.0)
    await other.close()


async def test_an_export_carries_the_board_and_nothing_of_an_import_waits(store: Store, paths: StorePaths) -> None:
    source = await tracked(store)
    document = await store.library.export(source)
    for fresh in (True, False):
        if not fresh:
            await store.release(source)
            await store.library.purge(source)
        made = await store.library.import_conversation(deepcopy(document), 99.0, OUR_TERMS)
        found = await boards(store, made.id)
        assert found == (*WHOLE[:2], TrackingStatus(success=4, disabled=1))
        assert "task" not in " ".join(made.left_out)


def no_order(tables: Tables) -> None:
    for row in tables["tracked_tasks"]:
        row["ord"] = 7


def two_plans(tables: Tables) -> None:
    for row in tables["tracked_tasks"]:
        row["is_planning"], row["ord"] = 1, 0


def foreign_link(tables: Tables) -> None:
    tables["messages"][0]["tracked_task_id"] = "somewhere-else"


def hostile_text(tables: Tables) -> None:
    words = "A\x1b]0;x\x07" + "x" * 2000
    tables["tracked_tasks"][1]["data_json"] = json.dumps({"task_description": words, "progresses": [words] * 300})


@pytest.mark.parametrize("change", [no_order, two_plans, foreign_link, hostile_text])
async def test_an_import_puts_a_board_in_order(store: Store, change: Callable[[Tables], None]) -> None:
    document: JsonObject = deepcopy(await store.library.export(await tracked(store)))
    change(cast("Tables", document["tables"]))
    made = await store.library.import_conversation(document, 99.0, OUR_TERMS)
    view = await store.tasks.board(made.id)
    assert [task.order for task in view.tasks] == list(range(1, len(view.tasks) + 1))
    assert len(view.tasks) + bool(view.planning) == 4
    for task in view.tasks:
        assert len(task.description) <= 500
        assert "\x1b" not in task.description
        assert len(task.progresses) <= 100


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("status", "great"),
        ("data_json", "[]"),
        ("data_json", "[" * 100_000),
        ("ord", -1),
        ("id", None),
        ("is_planning", 2),
    ],
)
async def test_an_impossible_task_refuses_its_import(store: Store, column: str, value: object) -> None:
    document: JsonObject = deepcopy(await store.library.export(await tracked(store)))
    cast("Tables", document["tables"])["tracked_tasks"][0][column] = value
    with pytest.raises(ImportRefused, match=f"invalid part: tracked_tasks.{column}"):
        await store.library.import_conversation(document, 99.0, OUR_TERMS)


async def test_an_import_with_too_many_tasks_is_refused(store: Store) -> None:
    document: JsonObject = deepcopy(await store.library.export(await tracked(store)))
    tasks = cast("Tables", document["tables"])["tracked_tasks"]
    tasks += [{**tasks[1], "id": f"task-{number}", "ord": number + 9} for number in range(MOST_TASKS)]
    with pytest.raises(ImportRefused, match="more than 100 tasks"):
        await store.library.import_conversation(document, 99.0, OUR_TERMS)


@pytest.mark.parametrize(
    "reading",
    [
        read_status,
        list_untasked,
        list_pending,
        lambda connection, conversation_id: settle_tracking(
            connection, conversation_id, MessageTracking.RUNNING, MessageTracking.PENDING, 2.0
        ),
    ],
    ids=["status", "untasked", "pending", "settle"],
)
def test_counts_and_lists_walk_the_index_and_not_the_texts(
    reading: Callable[[sqlite3.Connection, str], object],
) -> None:
    """The columns lie behind the texts of a message: each look would read them all."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection)
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    reading(connection, "c")
    connection.set_trace_callback(None)
    (statement,) = [one for one in statements if " messages" in one]
    plan = [str(row["detail"]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert "messages_tracking (conversation_id=?" in plan[0]
    connection.close()
