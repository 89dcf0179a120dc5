"""A conversation with sub-agents as one thing: exported and imported, forked, removed; and what all of them cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.machine.messages import TextBlock, Usage
from engine.machine.states import Completed
from engine.ports import Imported
from engine.records import AgentFacts, ConversationQuery, SpawnMode
from engine.records.runs import Totals
from engine.store import Store, StorePaths, open_store
from tests.support.storage import OUR_TERMS, history, move, new_conversation, query, reply, say, used
from tools.contract import PreparedImage

IMAGE = PreparedImage(b"picture", "image/png", 4, 5, 40, 50, 999)


async def family(store: Store) -> tuple[str, str]:
    """A conversation whose one sub-agent has seen an image, answered, and is named in an answer of its parent."""
    parent = (await store.create(new_conversation(), 1.0)).id
    facts = AgentFacts(parent, SpawnMode.BACKGROUND, "toolu_1", 1, "look around", context="User: hello")
    (child,) = await store.agents.create_all([replace(new_conversation(), agent=facts)], 2.0)
    await store.add_attachment(child.id, IMAGE, 2.0)
    spent = used(Usage(10, 5), 0.25)
    found = reply(TextBlock("Found it."))
    await store.commit(move(child.id, say("look around"), found, spent, state=Completed(3, "Found it."), at=3.0))
    own = used(Usage(100, 50), 0.5)
    await store.commit(move(parent, say("go"), reply(TextBlock(f"{child.id} started")), own, at=4.0))
    return parent, child.id


async def test_the_cost_of_a_conversation_is_that_of_all_its_sub_agents_too(store: Store) -> None:
    parent, _ = await family(store)
    record = await store.conversation(parent)
    assert record is not None
    assert (record.totals.cost_usd, record.agents_totals.cost_usd) == (0.5, 0.25)
    assert record.spent == Totals(110, 55, 0, 0, 0.75)
    (listed,) = await store.conversations(ConversationQuery())
    assert listed.totals == record.spent


async def test_an_export_holds_the_sub_agents_and_an_import_brings_them_back(store: Store, tmp_path: Path) -> None:
    parent, child = await family(store)
    document = json.loads(json.dumps(await store.library.export(parent)))
    other = await open_store(StorePaths.under(tmp_path / "other"))
    try:
        assert await other.library.import_conversation(document, 9.0, OUR_TERMS) == Imported(
            parent, ("2 undelivered notes",)
        )
        (brought,), (original,) = await other.agents.rows(parent), await store.agents.rows(parent)
        known = replace(original, facts=replace(original.facts, context=""), state=Completed(0, "Found it."))
        assert brought == known, "without the part of a system prompt that stood in its row"
        assert await other.messages(child) == await store.messages(child)
        assert [one.id for one in await other.conversations(ConversationQuery())] == [parent]
        assert history(await other.library.export(parent)) == history(document)
    finally:
        await other.close()


async def test_an_import_beside_its_original_gives_the_sub_agents_new_ids_wherever_they_are_named(
    store: Store,
) -> None:
    parent, child = await family(store)
    copy = (await store.library.import_conversation(await store.library.export(parent), 9.0, OUR_TERMS)).id
    (copied,) = await store.agents.rows(copy)
    assert copied.id != child
    assert (copied.facts.parent_id, copied.facts.task) == (copy, "look around")
    named = (await store.messages(copy))[-1]
    assert named.blocks == (TextBlock(f"{copied.id} started"),)
    assert [row.id for row in await store.agents.rows(parent)] == [child]


async def test_a_fork_leaves_the_sub_agents_behind(store: Store) -> None:
    parent, child = await family(store)
    fork = await store.library.fork(parent, "fork", 9.0)
    assert await store.agents.rows(fork.id) == []
    assert fork.spent == Totals()
    assert [row.id for row in await store.agents.rows(parent)] == [child]


@pytest.mark.parametrize("copied", [False, True])
async def test_a_purge_takes_them_along_with_their_images(store: Store, paths: StorePaths, copied: bool) -> None:
    parent, child = await family(store)
    if copied:  # the image is another conversation's too
        await store.library.import_conversation(await store.library.export(parent), 9.0, OUR_TERMS)
    await store.library.purge(parent)
    assert query(paths.database, "SELECT COUNT(*) FROM conversations WHERE id IN (?, ?)", parent, child) == [(0,)]
    assert query(paths.database, "SELECT COUNT(*) FROM messages WHERE conversation_id = ?", child) == [(0,)]
    assert len([path for path in paths.attachments.iterdir() if path.is_file()]) == int(copied)
