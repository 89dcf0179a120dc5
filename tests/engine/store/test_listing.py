"""Data of the list: pins, authors of titles, the last run's end, many changes in one transaction."""

from __future__ import annotations

from msgspec.structs import replace

from engine.machine.effects import FinishRun, RunStatus
from engine.machine.messages import Usage
from engine.machine.states import Idle
from engine.ports import ConversationChanges
from engine.records import ConversationQuery, TitleBy
from engine.records.runs import Totals
from engine.store import Store, StorePaths, open_store
from tests.support.storage import OUR_TERMS, move, new_conversation, start_run, used

PINNED = ConversationChanges(pinned=True)


async def test_a_pin_outlives_the_store(store: Store, paths: StorePaths) -> None:
    first = await store.create(new_conversation("one"), 1.0)
    second = await store.create(new_conversation("two"), 2.0)
    await store.change(first.id, PINNED, 50.0)
    await store.close()
    again = await open_store(paths)
    rows = await again.conversations(ConversationQuery())
    assert [(row.id, row.pinned_at) for row in rows] == [(second.id, 0.0), (first.id, 50.0)]
    await again.change(first.id, ConversationChanges(pinned=False), 60.0)
    record = await again.conversation(first.id)
    assert record is not None
    assert record.pinned_at == 0.0
    await again.close()


async def test_only_the_user_replaces_a_title_of_the_user(store: Store) -> None:
    unnamed = await store.create(new_conversation(), 1.0)
    named = await store.create(new_conversation("mine"), 1.0)
    suggestion = ConversationChanges(suggested_title="the model's")
    for one in (unnamed, named):
        call = used(Usage(1, 2), 0.5).call
        await store.change(one.id, replace(suggestion, calls=(call,)), 2.0)
    found = {row.id: row for row in await store.conversations(ConversationQuery())}
    assert (found[unnamed.id].title, found[named.id].title) == ("the model's", "mine")
    assert found[named.id].totals == Totals(1, 2, cost_usd=0.5)
    await store.change(unnamed.id, ConversationChanges(title="better"), 3.0)
    await store.change(unnamed.id, suggestion, 4.0)
    record = await store.conversation(unnamed.id)
    assert record is not None
    assert (record.title, record.title_by) == ("better", TitleBy.USER)


async def test_a_row_says_how_the_newest_run_ended(store: Store) -> None:
    conversation = await store.create(new_conversation(), 1.0)

    async def status() -> str:
        (row,) = await store.conversations(ConversationQuery())
        return row.last_status

    assert await status() == ""
    for ended in (RunStatus.SUCCESS, RunStatus.CANCELLED):
        run_id = await start_run(store, conversation.id)
        assert await status() == "running"
        await store.commit(move(conversation.id, FinishRun(run_id, ended, 1), state=Idle(2)))
        assert await status() == ended.value


async def test_many_change_together_and_those_of_another_process_stay(store: Store, paths: StorePaths) -> None:
    ids = [(await store.create(new_conversation(name), 1.0)).id for name in ("a", "b", "c")]
    await store.release(ids[0])
    other = await open_store(paths)
    await other.take(ids[0])
    refused = await store.library.change_all(ids, ConversationChanges(archived=True), 9.0)
    assert refused == [ids[0]]
    archived = await store.conversations(ConversationQuery(archived=True))
    assert {row.id for row in archived} == set(ids[1:])
    assert {row.put_away_at for row in archived} == {9.0}
    await other.close()


async def test_the_trash_shows_what_went_last_first(store: Store) -> None:
    ids = [(await store.create(new_conversation(name), at)).id for name, at in (("old", 1.0), ("new", 2.0))]
    for number, one in enumerate(reversed(ids)):
        await store.change(one, ConversationChanges(deleted=True), 10.0 + number)
    assert [row.id for row in await store.conversations(ConversationQuery(deleted=True))] == ids


async def test_a_draft_shows_in_the_list_and_a_fork_is_not_pinned(store: Store) -> None:
    conversation = await store.create(new_conversation("one"), 1.0)
    await store.change(conversation.id, replace(PINNED, draft="half a thought"), 2.0)
    copy = await store.library.fork(conversation.id, "copy", 3.0)
    rows = {row.id: row for row in await store.conversations(ConversationQuery())}
    assert rows[conversation.id].has_draft
    assert not rows["copy"].has_draft
    assert copy.pinned_at == 0.0


async def test_the_title_of_an_older_export_counts_as_the_users(store: Store) -> None:
    conversation = await store.create(new_conversation("named"), 1.0)
    document = await store.library.export(conversation.id)
    tables = document["tables"]
    assert isinstance(tables, dict)
    conversations = tables["conversations"]
    assert isinstance(conversations, list)
    (row,) = conversations
    assert isinstance(row, dict)
    del row["title_by"], row["pinned_at"]
    record = await store.conversation((await store.library.import_conversation(document, 2.0, OUR_TERMS)).id)
    assert record is not None
    assert (record.title, record.title_by) == ("named", TitleBy.USER)
