"""Long work on whole conversations: short transactions, hidden before its end, cleaned up after kill -9."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from msgspec import field
from msgspec.structs import replace

from engine.machine.effects import FinishRun, RunStatus, SaveToolResult, StartRun
from engine.machine.messages import ToolCall, ToolResult, ToolStatus
from engine.ports import Imported, StorageError
from engine.ports.files import NewBranch
from engine.records import ConversationQuery
from engine.search import parse_search
from engine.store import Store, StorePaths, open_store
from engine.store.slices import SlicePace
from tests.support.storage import OUR_TERMS, ROOT, asks_for_tools, move, new_conversation, query, say
from tests.support.waiting import PATIENCE, poll
from tools.contract import JsonObject, JsonValue

MESSAGES = 24


class Slowly(SlicePace):
    """Every slice takes one message; says when the first is written."""

    bytes: int = 1
    fixed: bool = True
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    first: Callable[[], object] = bool

    def took(self, seconds: float) -> None:
        if not self.begun.is_set():
            self.begun.set()
            self.first()


def slowly(store: Store, first: Callable[[], object] = bool) -> Slowly:
    """Work on this store from now on; `first` is done behind the first slice."""
    store.library.slices.pace = pace = Slowly(first=first)
    return pace


async def a_long_conversation(store: Store) -> str:
    conversation_id = (await store.create(new_conversation("Long"), 1.0)).id
    for number in range(MESSAGES - 1):
        message = replace(say(f"needle {number}", new_turn=not number % 5), run_id="run")
        begin = (StartRun("run", message.message.id),) if not number else ()
        await store.commit(move(conversation_id, *begin, message, at=1000.0 + number))
    message, calls = asks_for_tools("run", ToolCall("call-1", "bash", '{"command": "ls"}'))
    await store.commit(move(conversation_id, message, calls, at=2000.0))
    result = SaveToolResult(ToolResult("call-1", "needle", ToolStatus.SUCCESS))
    await store.commit(move(conversation_id, result, FinishRun("run", RunStatus.SUCCESS, 1), at=2001.0))
    return conversation_id


def rows_of(document: JsonObject, table: str) -> list[JsonValue]:
    return cast("list[JsonValue]", cast("JsonObject", document["tables"])[table])


async def hits(store: Store) -> list[str]:
    found = await store.library.search(parse_search("needle", cwd=Path("/")), seconds=PATIENCE)
    return sorted({hit.conversation_id for hit in found.hits})


def check_nothing_is_left(path: Path, *ids: str) -> None:
    """No row of any other conversation, and an index that holds what the tables hold."""
    connection = sqlite3.connect(path)
    try:
        for table in ("messages", "tool_calls", "turns", "runs", "events", "file_steps", "search_rows"):
            rows = connection.execute(f"SELECT DISTINCT conversation_id FROM {table}").fetchall()
            assert {row[0] for row in rows} <= set(ids), table
        assert {row[0] for row in connection.execute("SELECT id FROM conversations")} == set(ids)
        connection.execute("INSERT INTO search_index (search_index) VALUES ('integrity-check')")
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    finally:
        connection.rollback()
        connection.close()


async def during(store: Store, work: asyncio.Task[object], check: Callable[[], object]) -> int:
    """Store messages of another conversation while the work is under way; gives how many."""
    other = (await store.create(new_conversation("Other"), 5.0)).id
    stored = 0
    while not work.done():
        await store.commit(move(other, say("quick"), at=6.0))
        stored += 1
        check()
    return stored


async def test_others_are_stored_while_a_long_conversation_is_copied_and_the_copy_is_seen_when_whole(
    store: Store,
) -> None:
    source = await a_long_conversation(store)
    slowly(store)
    states: set[tuple[bool, bool]] = set()

    async def copy() -> object:
        return await store.library.fork(source, "copy", 3000.0)

    work = asyncio.create_task(copy())

    def look() -> None:
        (marks,) = query(store.path, "SELECT count(*), count(partial) FROM conversations WHERE id = 'copy'")
        states.add((bool(marks[0]), bool(marks[1])))

    assert await during(store, work, look) > 5
    await work
    assert (True, True) in states, "it was seen in the making"
    assert await hits(store) == sorted(["copy", source])
    both = [await store.messages(one) for one in (source, "copy")]
    assert [one.blocks for one in both[0]] == [one.blocks for one in both[1][:MESSAGES]], "and what ends the open call"


async def test_a_copy_in_the_making_is_nowhere(store: Store) -> None:
    source = await a_long_conversation(store)
    seen: list[object] = []
    await store.library.fork(source, "copy", 3000.0)
    await store.release("copy")
    connection = sqlite3.connect(store.path)
    connection.execute("UPDATE conversations SET partial = 'somebody' WHERE id = 'copy'")
    connection.commit()
    connection.close()
    seen += [one.id for one in await store.conversations(ConversationQuery())]
    seen += [one.id for one in await store.find("copy")]
    seen += [one.id for one in await store.turn_log.family(source)]
    assert seen == [source, source]
    assert await hits(store) == [source]
    assert await store.conversation("copy") is None
    for deed in (store.take("copy"), store.library.purge("copy"), store.library.fork("copy", "again", 1.0)):
        with pytest.raises(StorageError, match="no conversation copy"):
            await deed


@pytest.mark.parametrize("size", [1, 120, 1000])
async def test_a_copy_in_slices_is_the_copy_at_once(store: Store, size: int) -> None:
    source = await a_long_conversation(store)
    whole = await store.library.fork(source, "whole", 3000.0)
    store.library.slices.pace = SlicePace(size, fixed=True)
    sliced = await store.library.fork(source, "sliced", 3000.0)
    assert (whole.message_count, sliced.message_count) == (MESSAGES + 1, MESSAGES + 1)
    rows = [
        query(
            store.path,
            f"""SELECT m.seq, m.content_json, t.turn_number, r.status, r.trigger_message_id = first.id, c.output_text
                FROM messages AS m JOIN turns AS t ON t.id = m.turn_id LEFT JOIN runs AS r ON r.id = m.run_id
                LEFT JOIN messages AS first ON first.conversation_id = m.conversation_id AND first.seq = 1
                LEFT JOIN tool_calls AS c ON c.assistant_message_id = m.id
                WHERE m.conversation_id = '{one}' AND t.conversation_id = '{one}' ORDER BY m.seq""",
        )
        for one in ("whole", "sliced")
    ]
    assert rows[0] == rows[1]
    assert {(row[3], row[4]) for row in rows[0]} >= {("success", 1)}, "the run names its trigger in the copy"
    counts = "SELECT count(*) FROM {table} WHERE conversation_id = '{one}'"
    for table in ("messages", "turns", "runs", "tool_calls", "file_steps"):
        once, again = (query(store.path, counts.format(table=table, one=one)) for one in ("whole", "sliced"))
        assert once == again, table


async def test_a_long_conversation_is_removed_and_imported_in_slices(store: Store) -> None:
    source = await a_long_conversation(store)
    document = await store.library.export(source)
    slowly(store)
    await store.library.purge(source)
    check_nothing_is_left(store.path)
    assert await store.library.import_conversation(document, 4000.0, OUR_TERMS) == Imported(source)
    again, before = await store.library.export(source), document
    assert [len(one.blocks) for one in await store.messages(source)] == [1] * (MESSAGES + 1), (
        "the open call has its end"
    )
    assert rows_of(again, "tool_calls") == rows_of(before, "tool_calls")
    assert rows_of(again, "messages")[:-1] == rows_of(before, "messages")
    assert await hits(store) == [source]


async def test_a_branch_in_slices_takes_its_place_at_once(store: Store) -> None:
    source = await a_long_conversation(store)
    slowly(store)
    lists: list[list[str]] = []
    work = asyncio.create_task(store.turn_log.branch(NewBranch(source, "branch", 20, "again", 3000.0), None))
    while not work.done():
        lists.append([one.id for one in await store.conversations(ConversationQuery())])
    lists.append([one.id for one in await store.conversations(ConversationQuery())])
    assert {tuple(one) for one in lists} == {(source,), ("branch",)}
    assert (await work).record.draft == "again"


async def test_a_source_that_is_removed_while_it_is_copied_leaves_no_half_copy(store: Store) -> None:
    source = await a_long_conversation(store)
    await store.release(source)

    def remove() -> None:
        connection = sqlite3.connect(store.path, timeout=30)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("DELETE FROM conversations WHERE id = ?", (source,))
        connection.execute("DELETE FROM events WHERE conversation_id = ?", (source,))
        connection.commit()
        connection.close()

    slowly(store, remove)
    with pytest.raises(StorageError, match="deleted while"):
        await store.library.fork(source, "copy", 3000.0)
    check_nothing_is_left(store.path)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from engine.store import StorePaths, open_store
from engine.store.slices import SlicePace
from tests.support.storage import OUR_TERMS

async def main(home, deed, source, after):
    store = await open_store(StorePaths.under(Path(home)))
    count = 0

    class Deadly(SlicePace):
        def took(self, seconds):
            nonlocal count
            count += 1
            if count >= int(after):
                os.kill(os.getpid(), signal.SIGKILL)

    store.library.slices.pace = Deadly(1, fixed=True)
    match deed:
        case "fork":
            await store.library.fork(source, "copy", 3.0)
        case "purge":
            await store.library.purge(source)
        case _:
            await store.library.import_conversation(await store.library.export(source), 3.0, OUR_TERMS)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("deed", ["fork", "purge", "import"])
@pytest.mark.parametrize("after", [1, 20])
async def test_after_kill_9_half_of_it_is_seen_by_nobody_and_removed(paths: StorePaths, deed: str, after: int) -> None:
    store = await open_store(paths)
    source = await a_long_conversation(store)
    await store.close()
    home = str(paths.database.parent)
    child = [sys.executable, "-c", KILLED, home, deed, source, str(after)]
    killed = await asyncio.create_subprocess_exec(*child, cwd=ROOT)
    assert await killed.wait() == -9
    again = await open_store(paths)
    await again.recover_all()
    left = [] if deed == "purge" else [source]
    assert [one.id for one in await again.conversations(ConversationQuery())] == left
    assert await hits(again) == left
    assert query(paths.database, "SELECT count(*) FROM conversations WHERE partial IS NOT NULL") == [(1,)]
    await again.library.clear_partial()
    check_nothing_is_left(paths.database, *left)
    await again.close()


async def test_what_a_living_process_is_making_is_left_alone(paths: StorePaths, store: Store) -> None:
    source = await a_long_conversation(store)
    pace = slowly(store)
    other = await open_store(paths)
    work = asyncio.create_task(store.library.fork(source, "copy", 3000.0))
    await pace.begun.wait()
    await other.library.clear_partial()
    assert (await work).id == "copy"
    await other.close()


async def test_whoever_waits_may_be_cancelled_and_the_copy_becomes_whole(store: Store) -> None:
    source = await a_long_conversation(store)
    pace = slowly(store)
    work = asyncio.create_task(store.library.fork(source, "copy", 3000.0))
    await pace.begun.wait()
    work.cancel()
    await asyncio.wait({work})
    assert await poll(lambda: not query(store.path, "SELECT 1 FROM conversations WHERE partial IS NOT NULL"))
    assert len(await store.messages("copy")) == MESSAGES + 1


@pytest.mark.parametrize(("seconds", "size"), [(0.04, 400_000), (0.4, 200_000), (0.001, 800_000)])
def test_a_slice_is_as_large_as_the_machine_is_quick(seconds: float, size: int) -> None:
    pace = SlicePace(400_000)
    pace.took(seconds)
    assert pace.bytes == size
