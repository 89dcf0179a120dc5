"""Whole conversations: lists, changes, forks, exports and imports, search, purge, images."""

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
from engine.machine.states import Idle
from engine.ports import ConversationChanges, Imported, RecordEvent, RecordSpan, SetContext, StorageError
from engine.records import ConversationQuery, PermissionMode
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
