"""Archived and removed conversations are deleted after the retention time, and nothing else is."""

from __future__ import annotations

import pytest

from engine.ports import ConversationChanges, OwnedElsewhere
from engine.ports.files import NewBranch
from engine.records import ConversationQuery
from engine.store import Store, StorePaths, open_store
from engine.store.opening import open_for_reading
from engine.store.slices import count_put_away
from tests.support.storage import move, new_conversation, query, say

ARCHIVE, TRASH = ConversationChanges(archived=True), ConversationChanges(deleted=True)


async def put_away(store: Store, title: str, *steps: tuple[ConversationChanges, float]) -> str:
    """A conversation that is not open, after some changes."""
    conversation_id = (await store.create(new_conversation(title), 1.0)).id
    await store.commit(move(conversation_id, say(f"about {title}", new_turn=True), at=2.0))
    for changes, at in steps:
        await store.change(conversation_id, changes, at)
    await store.release(conversation_id)
    return conversation_id


def left(paths: StorePaths) -> list[str]:
    return [str(row[0]) for row in query(paths.database, "SELECT title FROM conversations ORDER BY rowid")]


async def remove_all(store: Store, before: float) -> list[bool]:
    return [await store.library.remove_expired(one, before) for one in await store.library.list_expired(before)]


async def test_only_what_was_put_away_before_that_time_goes(store: Store, paths: StorePaths) -> None:
    await put_away(store, "in the list")
    await put_away(store, "old archive", (ARCHIVE, 10.0))
    await put_away(store, "old trash", (TRASH, 10.0))
    await put_away(store, "archived long ago, deleted just now", (ARCHIVE, 10.0), (TRASH, 90.0))
    await put_away(store, "new archive", (ARCHIVE, 90.0))
    await put_away(store, "taken back", (ARCHIVE, 10.0), (ConversationChanges(archived=False), 20.0))
    assert await remove_all(store, 50.0) == [True, True]
    assert left(paths) == ["in the list", "archived long ago, deleted just now", "new archive", "taken back"]
    assert query(paths.database, "SELECT count(*) FROM messages")[0][0] == 4
    assert await store.library.list_expired(50.0) == []


async def test_what_is_open_here_or_was_taken_back_meanwhile_stays(store: Store, paths: StorePaths) -> None:
    opened = await put_away(store, "open here", (ARCHIVE, 10.0))
    back = await put_away(store, "taken back", (TRASH, 10.0))
    assert await store.library.list_expired(50.0) == [opened, back]
    await store.take(opened)
    await store.change(back, ConversationChanges(deleted=False), 60.0)
    assert not await store.library.remove_expired(opened, 50.0)
    assert not await store.library.remove_expired(back, 50.0)
    assert left(paths) == ["open here", "taken back"]


async def test_what_another_process_has_stays(store: Store, paths: StorePaths) -> None:
    theirs = await put_away(store, "theirs", (ARCHIVE, 10.0))
    other = await open_store(paths)
    await other.take(theirs)
    with pytest.raises(OwnedElsewhere):
        await store.library.remove_expired(theirs, 50.0)
    assert left(paths) == ["theirs"]
    await other.close()
    assert await remove_all(store, 50.0) == [True]


async def test_the_branch_that_an_archived_one_replaced_goes_with_it_and_never_comes_back(
    store: Store, paths: StorePaths
) -> None:
    first = await put_away(store, "first")
    await store.take(first)
    await store.turn_log.branch(NewBranch(first, "second", 1, "", 5.0), None)
    await store.release(first)
    await store.change("second", ARCHIVE, 10.0)
    await store.release("second")
    assert await store.library.list_expired(50.0) == [first, "second"]
    assert await remove_all(store, 50.0) == [True, True]
    assert left(paths) == []
    assert await store.conversations(ConversationQuery()) == []


async def test_a_branch_whose_replacement_is_in_the_trash_is_in_the_list_and_stays(
    store: Store, paths: StorePaths
) -> None:
    first = await put_away(store, "first")
    await store.take(first)
    await store.turn_log.branch(NewBranch(first, "second", 1, "", 5.0), None)
    await store.change("second", TRASH, 10.0)
    await store.release("second")
    assert await remove_all(store, 50.0) == [True]
    assert [row[0] for row in query(paths.database, "SELECT id FROM conversations")] == [first]


async def test_how_many_and_how_large(store: Store, paths: StorePaths) -> None:
    await put_away(store, "in the list")
    await put_away(store, "x" * 10_000, (ARCHIVE, 10.0))
    await put_away(store, "new", (TRASH, 90.0))
    connection = open_for_reading(paths.database)
    try:
        found = count_put_away(connection, 50.0)
        assert (found.count, found.expired) == (2, 1)
        assert 20_000 < found.bytes < 22_000
        assert count_put_away(connection, None).expired == 0
    finally:
        connection.close()
