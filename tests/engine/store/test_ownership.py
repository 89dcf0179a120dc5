"""A conversation belongs to one living process at a time (FAULTS 73-77); what is archived or removed expires."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.machine.messages import text_in
from engine.ports import ConversationChanges, OwnedElsewhere
from engine.ports.files import NewBranch
from engine.records import AgentFacts, ConversationQuery, ForkPlace, Recovery, SpawnMode
from engine.store import Store, StorePaths, connection, open_store
from engine.store.connection import data_version
from engine.store.opening import open_for_reading
from engine.store.slices import count_put_away
from tests.support.storage import ROOT, move, new_conversation, query, say

OWNER = """
import asyncio, sys
from pathlib import Path
from engine.store import StorePaths, open_store

async def main():
    store = await open_store(StorePaths.under(Path(sys.argv[1])))
    await store.take(sys.argv[2])
    sys.stdout.write("taken\\n"); sys.stdout.flush()
    sys.stdin.read()
    await store.close()

asyncio.run(main())
"""


@contextmanager
def owning_process(paths: StorePaths, conversation_id: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has taken the conversation; it closes its store when its stdin ends."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(paths.database.parent), conversation_id],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        yield process
        process.kill()


@pytest.fixture
async def conversation_id(store: Store) -> AsyncIterator[str]:
    created = await store.create(new_conversation(), 1.0)
    await store.release(created.id)
    yield created.id


async def test_a_sub_agent_belongs_to_the_process_that_has_its_parent(
    store: Store, paths: StorePaths, conversation_id: str
) -> None:
    facts = AgentFacts(conversation_id, SpawnMode.BACKGROUND, "t1", 1, "look")
    (agent,) = await store.agents.create_all([replace(new_conversation(), agent=facts)], 1.0)
    await store.release(agent.id)
    with owning_process(paths, conversation_id) as owner:
        with pytest.raises(OwnedElsewhere) as refused:
            await store.take(agent.id)
        assert refused.value.pid == owner.pid
    await store.take(agent.id)


async def test_a_conversation_of_another_process_can_be_read_and_not_changed(
    store: Store, paths: StorePaths, conversation_id: str
) -> None:
    with owning_process(paths, conversation_id) as other:
        with pytest.raises(OwnedElsewhere) as refusal:
            await store.take(conversation_id)
        assert refusal.value.pid == other.pid
        with pytest.raises(OwnedElsewhere):
            await store.change(conversation_id, ConversationChanges(title="x"), 2.0)
        with pytest.raises(OwnedElsewhere):
            await store.library.purge(conversation_id)
        (summary,) = await store.conversations(ConversationQuery())
        assert summary.owner_pid == other.pid
        assert await store.messages(conversation_id) == []


async def test_the_conversation_of_a_killed_process_is_free_at_once(
    store: Store, paths: StorePaths, conversation_id: str
) -> None:
    with owning_process(paths, conversation_id) as other:
        other.kill()
        other.wait()
        (summary,) = await store.conversations(ConversationQuery())
        assert summary.owner_pid is None
        assert await store.take(conversation_id) == Recovery(conversation_id)
    record = await store.conversation(conversation_id)
    assert record is not None
    assert record.owner_pid == os.getpid()


async def test_a_process_that_closes_gives_everything_up(store: Store, paths: StorePaths, conversation_id: str) -> None:
    with owning_process(paths, conversation_id) as other:
        other.communicate()
    await store.take(conversation_id)
    assert query(store.path, "SELECT pid FROM instances") == [(os.getpid(),)]
    assert len(list(paths.locks.iterdir())) == 1


async def test_taking_twice_and_listing_change_nothing(store: Store, conversation_id: str) -> None:
    assert (await store.conversations(ConversationQuery()))[0].owner_pid is None
    await store.take(conversation_id)
    assert await store.take(conversation_id) == Recovery(conversation_id)
    await store.release(conversation_id)
    assert (await store.conversations(ConversationQuery()))[0].owner_pid is None


async def test_an_owner_from_before_a_reboot_is_dead_even_if_its_lock_is_held(
    store: Store, paths: StorePaths, conversation_id: str
) -> None:
    with owning_process(paths, conversation_id):
        query(store.path, "UPDATE instances SET boot_id = 'before' WHERE pid <> ?", os.getpid())
        assert (await store.take(conversation_id)).conversation_id == conversation_id


async def test_dead_processes_are_forgotten(store: Store, paths: StorePaths, conversation_id: str) -> None:
    with owning_process(paths, conversation_id) as other:
        other.kill()
        other.wait()
    await store.recover_all()
    assert query(store.path, "SELECT pid FROM instances") == [(os.getpid(),)]
    assert len(list(paths.locks.iterdir())) == 1


async def test_two_stores_on_one_file_write_side_by_side(store: Store, paths: StorePaths) -> None:
    other = await open_store(paths)
    ids = [(await each.create(new_conversation(), 1.0)).id for each in (store, other)]
    rounds = 60
    await asyncio.gather(
        *(
            each.commit(move(conversation_id, say(str(turn))))
            for turn in range(rounds)
            for each, conversation_id in zip((store, other), ids, strict=True)
        )
    )
    for conversation_id in ids:
        assert [each.seq for each in await other.messages(conversation_id)] == list(range(1, rounds + 1))
    await other.close()
    assert query(store.path, "PRAGMA integrity_check") == [("ok",)]


async def test_of_two_who_take_at_once_one_gets_it(store: Store, paths: StorePaths, conversation_id: str) -> None:
    other = await open_store(paths)
    outcomes = await asyncio.gather(store.take(conversation_id), other.take(conversation_id), return_exceptions=True)
    assert sorted(type(each).__name__ for each in outcomes) == ["OwnedElsewhere", "Recovery"]
    await other.close()


async def test_only_what_another_process_wrote_counts_as_changed_elsewhere(paths: StorePaths) -> None:
    here, there = await open_store(paths), await open_store(paths)
    assert not await here.library.has_changed_externally(), "the first look is the beginning"
    conversation_id = (await here.create(new_conversation(), 1.0)).id
    await here.commit(move(conversation_id, say("mine")))
    assert not await here.library.has_changed_externally()
    await there.create(new_conversation(), 2.0)
    assert await here.library.has_changed_externally()
    assert not await here.library.has_changed_externally()
    await there.close()
    await here.close()


async def test_a_database_at_rest_is_asked_only_when_its_files_change(
    paths: StorePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def counted(database: sqlite3.Connection) -> int:
        nonlocal asked
        asked += 1
        return data_version(database)

    monkeypatch.setattr(connection, "data_version", counted)
    here, there = await open_store(paths), await open_store(paths)
    for file in paths.database.parent.glob(f"{paths.database.name}*"):
        os.utime(file, (1, 1))  # long ago
    assert [await here.library.has_changed_externally() for _ in range(3)] == [False] * 3
    assert asked == 1
    await there.create(new_conversation(), 2.0)
    assert [await here.library.has_changed_externally() for _ in range(3)] == [True, False, False]
    await there.close()
    await here.close()


PLACE = ForkPlace(Path("/trees/fix"), "This is a copy in /trees/fix.")


async def test_it_has_the_messages_the_other_folder_and_the_note_for_the_model(store: Store) -> None:
    source = await store.create(new_conversation(), 1.0)
    await store.commit(move(source.id, say("hello")))
    copy = await store.library.fork(source.id, "copy", 2.0, place=PLACE)
    again = await store.library.fork("copy", "again", 3.0, place=ForkPlace(Path("/trees/b"), "And one in /trees/b."))
    found = await store.conversation("copy")
    assert found is not None
    assert found.record == copy.record
    assert (found.record.cwd, found.record.append_system_prompt) == (PLACE.cwd, PLACE.note)
    assert [text_in(row.blocks) for row in await store.messages("copy")] == ["hello"]
    assert again.record.append_system_prompt == "This is a copy in /trees/fix.\n\nAnd one in /trees/b."
    before = await store.conversation(source.id)
    assert before is not None
    assert (before.record.cwd, before.record.append_system_prompt) == (source.record.cwd, "")


@pytest.mark.parametrize(("place", "steps"), [(None, 1), (PLACE, 0)])
async def test_files_of_the_other_folder_cannot_be_restored_from_it(
    store: Store, place: ForkPlace | None, steps: int
) -> None:
    source = await store.create(new_conversation(), 1.0)
    await store.commit(move(source.id, say("hello")))

    def step(connection: object) -> None:
        connection.execute(  # type: ignore[attr-defined]  # a connection of sqlite3
            "INSERT INTO file_steps (id, conversation_id, kind, state, seq, folder, look, began, changes, coverage)"
            " VALUES ('s', ?, 'turn', 'done', 1, '/work', '', 1, x'90', x'90')",
            (source.id,),
        )

    await store.transactions.write(step)
    await store.library.fork(source.id, "copy", 2.0, place=place)
    assert len(query(store.path, "SELECT id FROM file_steps WHERE conversation_id = 'copy'")) == steps


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
