"""The stored stream: rising numbers, pages, batches, readers in any process, removal (SPEC SDK-04, SDK-22)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from contextlib import aclosing, closing
from pathlib import Path
from typing import cast

import pytest

from engine.machine.effects import FinishRun, RunStatus, StartRun
from engine.machine.messages import Usage
from engine.ports import ConversationChanges, ImportTerms, RecordEvent
from engine.records.events import EventKind, StandingRun, StoredEvent
from engine.records.runs import CallPurpose, CallStatus, ModelCall
from engine.store import Store, StorePaths, open_ephemeral_store, open_store
from engine.store.events import MOST_ROWS, PAGE
from engine.store.names import are_names, decode_names, encode_names
from tests.support.storage import ROOT, asking, move, new_conversation, new_id, query, say, start_run
from tests.support.waiting import PATIENCE
from tools.contract import JsonObject


def event(kind: EventKind = EventKind.STATE_CHANGED) -> RecordEvent:
    return RecordEvent(new_id(), kind, '{"from":"a","to":"b"}')


async def recorded(store: Store, count: int, at: float = 1000.0) -> str:
    """A conversation with so many events."""
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(move(conversation_id, *(event() for _ in range(count)), at=at))
    return conversation_id


async def numbers(store: Store, seq: int = 0, conversation_id: str = "") -> list[int]:
    return [one.seq for one in await store.events.after(seq, conversation_id)]


async def test_a_number_is_never_used_again(paths: StorePaths) -> None:
    store = await open_store(paths)
    conversation_id = await recorded(store, 3)
    await store.close()
    query(paths.database, "DELETE FROM events WHERE seq > 1")
    store = await open_store(paths)
    await store.take(conversation_id)
    await store.commit(move(conversation_id, event()))
    assert await numbers(store) == [1, 4]
    await store.library.purge(conversation_id)
    assert (await store.events.snapshot()).seq == 4
    await recorded(store, 1)
    assert await numbers(store) == [5]
    await store.close()


async def test_a_reader_gets_one_conversation_or_all_in_pages(store: Store) -> None:
    first, second = await recorded(store, PAGE), await recorded(store, 5)
    assert len(await store.events.after(0)) == PAGE
    assert await numbers(store, PAGE) == list(range(PAGE + 1, PAGE + 6))
    assert await numbers(store, 0, second) == list(range(PAGE + 1, PAGE + 6))
    assert await numbers(store, PAGE - 1, first) == [PAGE]
    assert await numbers(store, 2**63 - 1) == await numbers(store, 0, "nothing") == []


async def test_a_snapshot_has_the_runs_under_way_and_the_number_from_which_to_follow(store: Store) -> None:
    resting = await recorded(store, 2)
    working = (await store.create(new_conversation(), 1.0)).id
    run_id = await start_run(store, working)
    snapshot = await store.events.snapshot()
    assert snapshot.conversations == (StandingRun(working, "awaiting_llm", run_id),)
    assert (await store.events.snapshot(resting)).conversations == (StandingRun(resting, "idle", ""),)
    await store.commit(move(working, FinishRun(run_id, RunStatus.SUCCESS, 1), event()))
    assert [one.type for one in await store.events.after(snapshot.seq)] == ["state.changed"]
    await store.commit(move(working, state=asking("r", 3)))
    assert (await store.events.snapshot("nothing")).conversations == ()


def ends_run(one: StoredEvent) -> bool:
    return one.payload_json.endswith('"to":"idle"}')


async def collected(store: Store, seq: int, count: int) -> list[StoredEvent]:
    """Events behind a number, as they come, up to a count or the end of a run."""
    found: list[StoredEvent] = []
    async with aclosing(store.events.follow(seq)) as stream:
        async for one in stream:
            found.append(one)
            if len(found) == count or ends_run(one):
                break
    return found


async def test_a_follower_in_this_process_sees_what_is_written_later(store: Store) -> None:
    conversation_id = await recorded(store, 1)
    following = asyncio.ensure_future(collected(store, 0, 3))
    await store.commit(move(conversation_id, event(), event()))
    assert [one.seq for one in await following] == [1, 2, 3]


async def test_a_store_in_memory_can_be_followed_too() -> None:
    store = await open_ephemeral_store()
    try:
        conversation_id = await recorded(store, 1)
        following = asyncio.ensure_future(collected(store, 0, 2))
        await store.commit(move(conversation_id, event()))
        assert [one.seq for one in await following] == [1, 2]
    finally:
        await store.close()


async def test_readers_that_resume_by_number_lose_and_double_nothing_while_another_process_writes(
    tmp_path: Path,
) -> None:
    runs = 12
    writer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.event_writer", str(tmp_path), str(runs)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert (await writer.stdout.readline()).strip() == b"READY"
    store = await open_store(StorePaths.under(tmp_path))
    try:
        seen: list[StoredEvent] = []
        async with asyncio.timeout(PATIENCE):
            while sum(map(ends_run, seen)) < runs:  # each reader stops in the middle of a page, the next one goes on
                seen += await collected(store, seen[-1].seq if seen else 0, 7)
            assert await writer.wait() == 0
        assert [one.seq for one in seen] == list(range(1, len(seen) + 1))
        assert len({one.id for one in seen}) == len(seen)
        assert sum(one.type == EventKind.TASK_COMPLETED for one in seen) == runs
        assert await numbers(store, seen[-1].seq) == []
    finally:
        await store.close()


async def test_only_old_events_are_removed_a_slice_at_a_time(store: Store) -> None:
    await recorded(store, 5, at=10.0)
    await recorded(store, 3, at=90.0)
    assert [await store.events.remove_older(50.0, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert await numbers(store) == [6, 7, 8]
    assert (await store.events.snapshot()).seq == 8


async def test_a_fork_and_an_import_take_no_events_along(store: Store, paths: StorePaths) -> None:
    source = await recorded(store, 4)
    run_id = await start_run(store, source)
    await store.commit(move(source, FinishRun(run_id, RunStatus.SUCCESS, 1)))
    before = len(await numbers(store))
    await store.library.fork(source, "copy", 5.0)
    assert "events" not in cast("JsonObject", (await store.library.export(source))["tables"])
    assert len(await numbers(store)) == before
    assert await numbers(store, 0, "copy") == []


async def test_an_unknown_kind_of_a_newer_phoenix_is_read_as_it_is(store: Store, paths: StorePaths) -> None:
    await recorded(store, 1)
    with closing(sqlite3.connect(paths.database)) as connection:
        connection.execute("INSERT INTO events (id, type, payload_json, ts) VALUES ('x', 'task:future', 'no json', 1)")
        connection.commit()
    newest = (await store.events.after(1))[0]
    assert (newest.type, newest.payload_json, newest.conversation_id) == ("task:future", "no json", "")


def progress(number: int) -> RecordEvent:
    return RecordEvent(f"event-{number}", EventKind.TASK_PROGRESS, json.dumps({"iteration": number}))


async def test_messages_and_other_events_keep_their_order_across_statements(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path))
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    first, second = say("one"), say("two")
    count = 2 * MOST_ROWS + 3
    events = [progress(number) for number in range(count)]
    await store.commit(move(conversation_id, first, *events, second, progress(count)))
    await store.close()
    found = query(store.path, "SELECT type, COALESCE(message_id, id) FROM events ORDER BY seq")
    persisted, told = EventKind.MESSAGE_PERSISTED.value, EventKind.TASK_PROGRESS.value
    assert found == [
        (persisted, first.message.id),
        *[(told, f"event-{number}") for number in range(count)],
        (persisted, second.message.id),
        (told, f"event-{count}"),
    ]
    assert query(store.path, "SELECT payload_json FROM events WHERE type = ?", persisted)[0] == (
        '{"role":"user","origin":"human","seq":1}',
    )


async def test_the_end_of_a_run_has_its_figures_also_without_a_payload_of_its_own(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path))
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    run_id = new_id()
    plain = RecordEvent("plain", EventKind.TASK_COMPLETED, run_id=run_id)
    named = RecordEvent("named", EventKind.TASK_COMPLETED, '{"result":"a } b","status":"success"}', run_id)
    ends = FinishRun(run_id, RunStatus.SUCCESS, 1)
    await store.commit(move(conversation_id, StartRun(run_id), ends, plain, named))
    await store.close()
    bare, whole = [json.loads(str(row[0])) for row in query(store.path, "SELECT payload_json FROM events ORDER BY seq")]
    assert (bare["numTurns"], bare["artifacts"]) == (1, [])
    assert whole == {"result": "a } b", "status": "success"} | bare


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}', "[null]", "[" * 5_000])
def test_a_damaged_column_is_no_name_and_is_not_imported(text: str) -> None:
    assert decode_names(text) == ()
    assert not are_names(text)


def test_names_come_back_as_they_were() -> None:
    names = ("b", "a", "ü'\"", "lone \ud800")
    assert decode_names(encode_names(names))[:3] == names[:3]
    assert (encode_names(()), are_names(""), are_names(encode_names(names))) == ("", True, True)
    assert not are_names(encode_names(("x" * 201,)))
    assert not are_names(encode_names(("x",) * 2_001))
    assert not are_names(7)


async def test_servers_that_are_off_and_loaded_tools_are_kept_with_the_conversation(store: Store) -> None:
    new = new_conversation()
    record = (await store.create(new, 1.0)).record
    changes = ConversationChanges(mcp_off=("files",), mcp_loaded=("mcp__a__b", "mcp__a__a"))
    await store.change(new.id, changes, 1.0)
    stored = await store.conversation(new.id)
    assert stored is not None
    assert (stored.record.mcp_off, stored.record.mcp_loaded) == (("files",), ("mcp__a__b", "mcp__a__a"))
    assert changes.apply(record, 1.0).mcp_off == ("files",)


SEARCH = ModelCall(
    "s", CallPurpose.WEB_SEARCH, CallStatus.OK, "anthropic", "m", Usage(5, 6, web_searches=3), cost_usd=0.03
)


@pytest.mark.parametrize("older", [False, True])
async def test_searches_are_summed_exported_and_imported(tmp_path: Path, older: bool) -> None:
    store = await open_store(StorePaths.under(tmp_path))
    record = await store.create(new_conversation(), 1.0)
    await store.change(record.id, ConversationChanges(calls=(SEARCH,)), 2.0)
    (told,) = await store.library.calls(record.id)
    assert (told.purpose, told.web_searches, told.calls) == (CallPurpose.WEB_SEARCH, 3, 1)
    document: JsonObject = await store.library.export(record.id)
    if older:
        for row in cast("dict[str, list[JsonObject]]", document["tables"])["model_calls"]:
            del row["web_searches"]
    copied = await store.library.import_conversation(document, 3.0, ImportTerms(tmp_path, "demo/guide"))
    (again,) = await store.library.calls(copied.id)
    assert (again.calls, again.web_searches) == (1, 0 if older else 3)
    await store.close()
