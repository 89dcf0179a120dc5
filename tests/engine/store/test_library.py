"""Whole conversations: lists, families of agents, changes, forks, exports and imports, search, purge, images."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.machine.effects import FinishRun, MarkToolCall, RunStatus, SaveToolResult
from engine.machine.messages import ImageBlock, TextBlock, ToolCall, ToolResult, ToolResultBlock, ToolStatus, Usage
from engine.machine.states import Completed, Idle
from engine.ports import ConversationChanges, Imported, RecordEvent, RecordSpan, SetContext, StorageError
from engine.records import AgentFacts, ConversationQuery, PermissionMode, SpawnMode, TitleBy
from engine.records.events import EventKind
from engine.records.runs import Totals
from engine.store import Store, StorePaths, open_store
from tests.support.storage import (
    OUR_TERMS,
    asking,
    asks_for_tools,
    history,
    move,
    new_conversation,
    new_id,
    query,
    reply,
    say,
    start_run,
    used,
)
from tools.contract import JsonObject, PreparedImage


def image(content: bytes) -> PreparedImage:
    return PreparedImage(content, "image/png", 4, 5, 40, 50, 999)


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(StorePaths.under(tmp_path / "other"))
    yield opened
    await opened.close()


async def rich_conversation(store: Store) -> str:
    """Two turns, an image, a tool round, a run with its trace, a draft."""
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    attachment = await store.add_attachment(conversation_id, image(b"picture"), 1.0)
    block = ImageBlock(attachment.id, 4, 5)
    run_id = await start_run(store, conversation_id, "Look at this picture")
    asked = asks_for_tools(run_id, ToolCall("t1", "read_image", '{"path":"a"}'))
    result = ToolResult("t1", "seen", ToolStatus.SUCCESS, images=(block,), display_json='{"type":"plain","text":"x"}')
    answered = replace(say("").message, blocks=(ToolResultBlock("t1", (TextBlock("seen"), block)),))
    await store.commit(
        move(
            conversation_id,
            *asked,
            MarkToolCall("t1", ToolStatus.RUNNING),
            SaveToolResult(result),
            replace(say(""), message=answered, run_id=run_id),
            reply(TextBlock("A needle in 100% hay_stack."), run_id=run_id),
            RecordSpan(new_id(), run_id, "t1", "read_image", 1, "success", 5),
            RecordEvent(new_id(), EventKind.STATE_CHANGED, "{}", run_id),
            used(Usage(1, 2, 3, 4), 0.5, run_id),
            SetContext(50, 100, False, Usage(1, 2)),
            FinishRun(run_id, RunStatus.SUCCESS, 2),
            state=Idle(3),
            at=1500.25,
        )
    )
    await store.commit(move(conversation_id, say("And then?", new_turn=True), state=Idle(3), at=2000.0))
    await store.change(conversation_id, ConversationChanges(draft="half a thou", scroll_seq=3), 2.0)
    return conversation_id


async def test_the_list_is_newest_first_in_pages_and_by_folder_and_title(store: Store) -> None:
    made = [
        (await store.create(new_conversation(f"{'odd' if number % 2 else 'even'} {number}%", f"/f{number}"), number)).id
        for number in range(6)
    ]

    async def listed(query: ConversationQuery) -> list[int]:
        return [made.index(each.id) for each in await store.conversations(query)]

    assert await listed(ConversationQuery()) == [5, 4, 3, 2, 1, 0]
    assert await listed(ConversationQuery(limit=2, offset=1)) == [4, 3]
    assert await listed(ConversationQuery(cwd=Path("/f3"))) == [3]
    assert await listed(ConversationQuery(title_contains="ODD")) == [5, 3, 1]
    assert await listed(ConversationQuery(title_contains="4%")) == [4]
    assert await listed(ConversationQuery(title_contains="_")) == []


async def test_archive_and_trash_are_lists_of_their_own(store: Store) -> None:
    ids = [(await store.create(new_conversation(), number)).id for number in range(3)]
    await store.change(ids[0], ConversationChanges(archived=True), 9.0)
    await store.change(ids[1], ConversationChanges(deleted=True), 9.0)

    async def listed(query: ConversationQuery) -> list[str]:
        return [each.id for each in await store.conversations(query)]

    assert await listed(ConversationQuery()) == [ids[2]]
    assert await listed(ConversationQuery(archived=True)) == [ids[0]]
    assert await listed(ConversationQuery(deleted=True)) == [ids[1]]
    assert await store.find(ids[1]) == []
    await store.change(ids[0], ConversationChanges(archived=False), 9.0)
    await store.change(ids[1], ConversationChanges(deleted=False), 9.0)
    assert await listed(ConversationQuery()) == [ids[2], ids[1], ids[0]]


async def test_changes_touch_only_what_they_name(store: Store) -> None:
    record = await store.create(new_conversation("Before"), 1.0)
    await store.change(
        record.id,
        ConversationChanges(
            title="After", draft="d", scroll_seq=4, model="x/y", permission_mode=PermissionMode.PLAN, unread=True
        ),
        9.0,
    )
    assert await store.conversation(record.id) == replace(
        record, title="After", draft="d", scroll_seq=4, model="x/y", permission_mode=PermissionMode.PLAN
    )
    assert (await store.conversations(ConversationQuery()))[0].unread
    await store.change(record.id, ConversationChanges(title=""), 9.0)
    assert (await store.conversations(ConversationQuery()))[0].title == ""
    with pytest.raises(StorageError, match="no conversation"):
        await store.change("unknown", ConversationChanges(title="x"), 9.0)


async def test_a_conversation_is_found_by_id_then_beginning_then_title(store: Store) -> None:
    first = await store.create(replace(new_conversation("abc"), id="abcd-1"), 1.0)
    second = await store.create(replace(new_conversation("ab_"), id="abce-2"), 2.0)

    async def found(reference: str) -> list[str]:
        return [each.id for each in await store.find(reference)]

    assert await found("abcd-1") == [first.id]
    assert await found("abc") == [second.id, first.id]
    assert await found("ab_") == [second.id]
    assert await found("zzz") == []
    assert await found("") == []


async def test_an_image_is_stored_once_per_content(store: Store, paths: StorePaths) -> None:
    ids = [(await store.create(new_conversation(), 1.0)).id for _ in range(2)]
    first = await store.add_attachment(ids[0], image(b"one"), 1.0)
    assert await store.add_attachment(ids[0], image(b"one"), 2.0) == first
    shared = await store.add_attachment(ids[1], image(b"one"), 3.0)
    assert shared.id != first.id
    assert first.path == paths.attachments / hashlib.sha256(b"one").hexdigest() == shared.path
    assert first.path.read_bytes() == b"one"
    assert first.path.stat().st_mode & 0o777 == 0o600
    assert (first.bytes, first.width, first.original_height, first.original_bytes) == (3, 4, 50, 999)
    assert await store.attachments([first.id, "unknown"]) == {first.id: first}
    assert len(list(paths.attachments.iterdir())) == 1


async def test_a_purged_conversation_leaves_nothing_but_shared_images(store: Store, paths: StorePaths) -> None:
    purged = await rich_conversation(store)
    kept = (await store.create(new_conversation(), 1.0)).id
    own = await store.add_attachment(purged, image(b"own"), 1.0)
    shared = await store.add_attachment(kept, image(b"picture"), 1.0)
    await store.library.purge(purged)
    assert not own.path.exists()
    assert shared.path.exists()
    for table in ("turns", "messages", "tool_calls", "runs", "traces", "spans", "events"):
        assert query(store.path, f"SELECT COUNT(*) FROM {table}") == [(0,)], table
    assert [each.id for each in await store.conversations(ConversationQuery())] == [kept]


async def test_an_export_read_elsewhere_is_the_same_conversation(store: Store, other: Store) -> None:
    conversation_id = await rich_conversation(store)
    document = await store.library.export(conversation_id)
    through_a_file = cast("JsonObject", json.loads(json.dumps(document)))
    assert await other.library.import_conversation(through_a_file, 9.0, OUR_TERMS) == Imported(
        conversation_id, ("its draft",)
    )
    assert history(await other.library.export(conversation_id)) == history(document)
    assert await other.messages(conversation_id) == await store.messages(conversation_id)
    (original,) = await store.conversations(ConversationQuery())
    assert await other.conversations(ConversationQuery()) == [replace(original, owner_pid=None, has_draft=False)]
    picture = query(other.path, "SELECT id FROM attachments")[0][0]
    (found,) = (await other.attachments([str(picture)])).values()
    assert found.path.read_bytes() == b"picture"


async def test_an_import_beside_its_original_gets_new_ids_that_fit_together(store: Store) -> None:
    conversation_id = await rich_conversation(store)
    document = await store.library.export(conversation_id)
    copied = (await store.library.import_conversation(document, 9.0, OUR_TERMS)).id
    assert copied != conversation_id
    before, after = await store.messages(conversation_id), await store.messages(copied)
    assert not {each.id for each in before} & {each.id for each in after}
    assert [each.seq for each in before] == [each.seq for each in after]
    (block,) = [block for each in after for block in each.blocks if isinstance(block, ToolResultBlock)]
    picture = cast("ImageBlock", block.content[1])
    assert (await store.attachments([picture.attachment_id]))[picture.attachment_id].path.read_bytes() == b"picture"
    (call,) = await store.tool_calls(copied, [each.id for each in after])
    assert (call.tool_use_id, call.status, call.output_text) == ("t1", ToolStatus.SUCCESS, "seen")
    assert query(store.path, "PRAGMA foreign_key_check") == []
    await store.take(copied)
    await store.commit(move(copied, say("goes on")))


def broken(document: JsonObject) -> dict[str, JsonObject]:
    """Documents that are nearly exports."""
    text = json.dumps(document)
    conversation_id = str(cast("Any", document)["tables"]["conversations"][0]["id"])
    files = {digest: base64.b64encode(b"other").decode() for digest in cast("JsonObject", document["files"])}
    return {
        "no tables": {"format": "phoenix-conversation", "version": 1},
        "an unknown format": {**document, "format": "other"},
        "a later version": {**document, "version": 99},
        "a foreign column": json.loads(text.replace('"seq":', '"sequel":')),
        "a number for blocks": json.loads(
            text.replace('\\"type\\": \\"text\\"', "5").replace('\\"text\\",', '\\"no\\",')
        ),
        "text for a number": json.loads(text.replace('"seq": 1', '"seq": "one"')),
        "a number that is too large": json.loads(text.replace('"seq": 1', f'"seq": {2**64}')),
        "a path for an id": json.loads(text.replace(conversation_id, "../../etc")),
        "an unknown role": json.loads(text.replace('"role": "user"', '"role": "king"')),
        "an image changed": {**document, "files": cast("JsonObject", files)},
        "a list for a row": {**document, "tables": {"conversations": [[]]}},
        "no conversation": {**document, "tables": {}},
    }


async def test_what_is_no_export_is_refused_in_a_sentence_and_changes_nothing(store: Store, other: Store) -> None:
    document = await store.library.export(await rich_conversation(store))
    for name, wrong in broken(document).items():
        assert wrong != document, name
        with pytest.raises(StorageError, match=r"\.$"):
            await other.library.import_conversation(wrong, 9.0, OUR_TERMS)
        assert await other.conversations(ConversationQuery()) == [], name
    with pytest.raises(StorageError, match="no conversation"):
        await store.library.export("unknown")


async def test_a_fork_has_all_that_was_said_and_goes_its_own_way(store: Store) -> None:
    source = await rich_conversation(store)
    fork = await store.library.fork(source, new_id(), 3000.0)
    before, after = await store.messages(source), await store.messages(fork.id)
    assert [(each.seq, each.turn_number, each.origin, each.model) for each in after] == [
        (each.seq, each.turn_number, each.origin, each.model) for each in before
    ]
    assert (fork.title, fork.draft, fork.totals, fork.state) == ("(2) Look at this picture", "", Totals(), Idle(0))
    assert (fork.created_at, fork.context_tokens, fork.owner_pid is None) == (3000.0, 50, False)
    assert [call.tool_use_id for call in await store.tool_calls(fork.id, [each.id for each in after])] == ["t1"]
    await store.library.purge(source)
    await store.commit(move(fork.id, say("On its own", new_turn=True)))
    assert (await store.messages(fork.id))[-1].turn_number == 2
    (block,) = [block for each in after for block in each.blocks if isinstance(block, ToolResultBlock)]
    picture = cast("ImageBlock", block.content[1])
    assert (await store.attachments([picture.attachment_id]))[picture.attachment_id].path.exists()


async def test_copies_of_a_conversation_are_told_apart_by_their_titles(store: Store) -> None:
    source = await store.create(new_conversation(), 1.0)
    await store.commit(move(source.id, say("100% of (it)")))
    first = await store.library.fork(source.id, new_id(), 2.0)
    second = await store.library.fork(first.id, new_id(), 3.0)
    nothing = await store.library.fork(source.id, new_id(), 4.0, 0)
    await store.commit(move(nothing.id, say("Something else")))
    (named,) = [one.title for one in await store.conversations(ConversationQuery()) if one.id == nothing.id]
    assert (first.title, second.title, nothing.title, named) == (
        "(2) 100% of (it)",
        "(3) 100% of (it)",
        "",
        "Something else",
    )


async def test_a_fork_up_to_an_open_tool_round_closes_it_with_the_real_result(store: Store) -> None:
    source = await rich_conversation(store)
    fork = await store.library.fork(source, new_id(), 3000.0, up_to_seq=2)
    messages = await store.messages(fork.id)
    assert [each.seq for each in messages] == [1, 2, 3]
    (block,) = messages[-1].blocks
    assert isinstance(block, ToolResultBlock)
    assert (block.tool_use_id, block.content[0], block.is_error) == ("t1", TextBlock("seen"), False)
    assert (fork.message_count, fork.context_tokens, fork.context_estimated) == (3, 0, True)
    assert query(store.path, "SELECT COUNT(*) FROM turns WHERE conversation_id = ?", fork.id) == [(1,)]


async def test_a_running_conversation_can_be_forked(store: Store) -> None:
    source = (await store.create(new_conversation(), 1.0)).id
    run_id = await start_run(store, source)
    await store.commit(move(source, *asks_for_tools(run_id, ToolCall("t1", "bash", "{}")), state=asking(run_id)))
    fork = await store.library.fork(source, new_id(), 3.0)
    (block,) = (await store.messages(fork.id))[-1].blocks
    assert isinstance(block, ToolResultBlock)
    assert block.content == (TextBlock("[Tool execution interrupted by restart]"),)
    assert query(store.path, "SELECT status FROM runs ORDER BY rowid") == [("running",), ("interrupted",)]


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
