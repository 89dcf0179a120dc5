"""A copy that works in another folder than its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.machine.messages import text_in
from engine.records import ForkPlace
from engine.store import Store, StorePaths, open_store
from tests.support.storage import move, new_conversation, query, say

PLACE = ForkPlace(Path("/trees/fix"), "This is a copy in /trees/fix.")


@pytest.fixture
async def store(tmp_path: Path) -> Store:
    return await open_store(StorePaths.under(tmp_path))


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
    await store.close()


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
    await store.close()
