"""Names of conversations that can be typed, the user's prompts, effects of each prompt, conversations of scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.machine.effects import FinishRun, RunStatus, SaveToolResult, StartRun
from engine.machine.messages import (
    Block,
    NewMessage,
    Origin,
    Role,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolStatus,
    ToolUseBlock,
)
from engine.ports import AppendMessage, ConversationChanges
from engine.records import ConversationQuery, NewConversation
from engine.records.runs import TurnDigest, TurnNote, TurnSummary
from engine.store import Store, StorePaths, open_ephemeral_store, open_store
from engine.store.turns import EXCERPT, FIRST_WORDS
from tests.support.storage import OUR_TERMS, asks_for_tools, move, new_conversation, new_id, query, reply, say
from tools.fresh_ids import LONGEST_SLUG as LONGEST
from tools.fresh_ids import slug_of


async def slugs(store: Store) -> dict[str, object]:
    """Slugs by id."""
    return dict(query(store.path, "SELECT id, slug FROM conversations"))  # type: ignore[arg-type]  # pairs by the query


async def titled(store: Store, title: str) -> str:
    return (await store.create(new_conversation(title), 1.0)).id


async def found(store: Store, reference: str, *, partly: bool = False) -> list[str]:
    return [one.id for one in await store.find(reference, partly=partly)]


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Retry work ✨", "retry-work"),
        ("  Über Straße, Café!", "uber-strasse-cafe"),
        ("--flag -x", "flag-x"),
        ("a/../../b\x00\n\t;rm -rf", "a-b-rm-rf"),
        ("Fix the parser of the configuration files of users", "fix-the-parser-of-the-configuration"),
        ("x" * 60, "x" * LONGEST),
        ("日本語", ""),
        ("✨", ""),
        ("", ""),
    ],
)
def test_a_slug_is_made_of_the_words_of_a_title(title: str, slug: str) -> None:
    assert slug_of(title) == slug


@given(st.text(max_size=300))
def test_a_slug_can_be_typed_whatever_the_title_is(title: str) -> None:
    slug = slug_of(title)
    assert len(slug) <= LONGEST
    assert all(letter in "abcdefghijklmnopqrstuvwxyz0123456789-" for letter in slug)
    assert not slug.startswith("-")
    assert not slug.endswith("-")
    assert slug_of(slug) == slug


async def test_equal_titles_get_numbers_and_a_number_is_never_given_twice(store: Store) -> None:
    first, second, third = [await titled(store, "Retry!") for _ in range(3)]
    assert await slugs(store) == {first: "retry", second: "retry-2", third: "retry-3"}
    await store.change(second, ConversationChanges(title="Other"), 2.0)
    fourth = await titled(store, "retry")
    assert (await slugs(store))[fourth] == "retry-4"
    assert [await found(store, name) for name in ("retry-3", "retry-4", "other", "retry-2")] == [
        [third],
        [fourth],
        [second],
        [],
    ]
    assert set(await found(store, "retry")) == {first, fourth}, "a slug here, a title there"


async def test_a_slug_follows_the_title_and_stays_where_the_title_says_the_same(store: Store) -> None:
    await titled(store, "Retry")
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    assert (await slugs(store))[conversation_id] is None
    await store.commit(move(conversation_id, say("Retry please")))
    assert (await slugs(store))[conversation_id] == "retry-please"
    await store.change(conversation_id, ConversationChanges(suggested_title="Retry ✨"), 2.0)
    assert (await slugs(store))[conversation_id] == "retry-2"
    await store.change(conversation_id, ConversationChanges(title="RETRY"), 2.0)
    assert (await slugs(store))[conversation_id] == "retry-2"
    await store.change(conversation_id, ConversationChanges(title="日本語"), 2.0)
    assert (await slugs(store))[conversation_id] == "conversation"


async def test_copies_and_imports_get_slugs_of_their_own(store: Store) -> None:
    source = (await store.create(new_conversation(), 1.0)).id
    await store.commit(move(source, say("Fix it")))
    await store.library.fork(source, new_id(), 2.0)
    document = await store.library.export(source)
    imported = (await store.library.import_conversation(document, 3.0, OUR_TERMS)).id
    names = await slugs(store)
    assert sorted(map(str, names.values())) == ["2-fix-it", "fix-it", "fix-it-2"]
    assert names[imported] == "fix-it-2"


async def test_conversations_that_were_stored_without_slugs_are_found_by_what_they_would_be(paths: StorePaths) -> None:
    store = await open_store(paths)
    ids = [await titled(store, title) for title in ("Retry work ✨", "Old notes", "日本語")]
    await store.close()
    query(paths.database, "UPDATE conversations SET slug = NULL")
    store = await open_store(paths)
    try:
        assert [one.slug for one in await store.find(ids[0])] == [""]
        assert await found(store, "retry-work") == [ids[0]]
        assert await found(store, "Retry w", partly=True) == [ids[0]]
        assert await found(store, "NOTES", partly=True) == [ids[1]]
        assert await found(store, "") == []
        newer = await titled(store, "Retry work")
        assert await found(store, "retry-work") == [newer]
        await store.change(ids[0], ConversationChanges(title="Retry work"), 2.0)
        assert (await slugs(store))[ids[0]] == "retry-work-2"
    finally:
        await store.close()


async def test_a_title_that_looks_like_the_id_of_another_hides_it_from_nobody(store: Store) -> None:
    first = await titled(store, "First")
    posing = await titled(store, first[:8])
    assert set(await found(store, first[:8])) == {first, posing}
    assert await found(store, first) == [first]


async def test_parts_of_titles_count_in_any_case_and_the_beginning_first(store: Store) -> None:
    retry, old, percent = [await titled(store, title) for title in ("Ärger mit Retry", "Old ÄRGER", "100% done")]
    assert await found(store, "ärger", partly=True) == [retry]
    assert set(await found(store, "RGER", partly=True)) == {retry, old}
    assert await found(store, "arger-mit", partly=True) == [retry]
    assert await found(store, "%", partly=True) == [percent]
    assert await found(store, "_", partly=True) == []
    assert await found(store, "rger") == []


def row(role: Role, origin: Origin, block: Block, run_id: str) -> AppendMessage:
    return AppendMessage(NewMessage(new_id(), role, origin, (block,)), run_id)


def command(run_id: str) -> AppendMessage:
    return row(Role.SYSTEM, Origin.NOTICE, ToolUseBlock("shell_1", "bash", '{"command": "ls"}'), run_id)


def notice(run_id: str) -> AppendMessage:
    return row(Role.SYSTEM, Origin.NOTICE, TextBlock("3 processes ended late"), run_id)


def said(text: str, run_id: str) -> AppendMessage:
    return row(Role.USER, Origin.HUMAN, TextBlock(text), run_id)


async def test_a_command_is_one_of_them_its_output_is_not_wherever_it_stands(store: Store) -> None:
    conversation = (await store.create(new_conversation(), 1.0)).id
    runs = {
        "r1": (command("r1"), notice("r1"), said("$ ls\nREADME", "r1")),
        "r2": (command("r2"),),
        "r3": (said("$ 5 is too much", "r3"),),
    }
    for run_id, rows in runs.items():
        await store.commit(move(conversation, StartRun(run_id), *rows, FinishRun(run_id, RunStatus.SUCCESS, 0)))
    found = await store.turn_log.prompts(conversation, 10)
    assert [prompt.text for prompt in found] == ["$ 5 is too much", "! ls", "! ls"]


async def test_a_turn_names_its_tools_its_failures_its_files_its_time_and_its_cost(
    store: Store, paths: StorePaths
) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    run_id, first = new_id(), say("\n  Fix the test.\nIt hangs.", new_turn=True)
    calls = (
        ToolCall("c1", "bash", '{"command":"make test"}'),
        ToolCall("c2", "patch", '{"path":"a.py"}'),
        ToolCall("c3", "patch", '{"path":"b.py"}'),
        ToolCall("c4", "patch", '{"path":"a.py"}'),
        ToolCall("c5", "write_file", "no json"),
    )
    statuses = (ToolStatus.ERROR, *([ToolStatus.SUCCESS] * 4))
    await store.commit(move(conversation_id, first, StartRun(run_id, first.message.id), at=10.0))
    await store.commit(move(conversation_id, *asks_for_tools(run_id, *calls), at=11.0))
    results = [SaveToolResult(ToolResult(call.id, "x", status)) for call, status in zip(calls, statuses, strict=True)]
    await store.commit(move(conversation_id, *results, reply(TextBlock("done"), run_id=run_id), at=12.0))
    await store.commit(move(conversation_id, FinishRun(run_id, RunStatus.SUCCESS, 2), at=14.5))
    await store.commit(move(conversation_id, say("Thanks.", new_turn=True), at=20.0))
    query(paths.database, "UPDATE runs SET cost_usd = 0.25")
    turns = await store.library.turns(conversation_id)
    assert turns == [
        TurnSummary(
            1, "Fix the test.", 10.0, (("patch", 3), ("bash", 1), ("write_file", 1)), 1, ("a.py", "b.py"), 4.5, 0.25
        ),
        TurnSummary(turns[1].seq, "Thanks.", 20.0),
    ]


async def test_a_megabyte_of_a_prompt_is_not_read_for_its_first_line(store: Store) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(move(conversation_id, say("x" * 1_000_000, new_turn=True)))
    (turn,) = await store.library.turns(conversation_id)
    assert turn.words == "x" * FIRST_WORDS


async def test_a_summary_stands_with_the_last_prompt_of_its_turn_and_goes_into_a_fork(store: Store) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    for message in (say("Fix it.", new_turn=True), say("And test it."), say("Thanks.", new_turn=True)):
        await store.commit(move(conversation_id, message))
    note = ConversationChanges(turn_note=TurnNote(0, "Fixed the retry \ud800 and its test."))
    await store.change(conversation_id, note, 2.0)
    wanted = ["", "Fixed the retry � and its test.", ""]
    assert [turn.summary for turn in await store.library.turns(conversation_id)] == wanted
    fork = await store.library.fork(conversation_id, new_id(), 3.0)
    assert [turn.summary for turn in await store.library.turns(fork.id)] == wanted
    await store.change(conversation_id, ConversationChanges(turn_note=TurnNote(9, "gone")), 4.0)
    assert [turn.summary for turn in await store.library.turns(conversation_id)] == wanted


async def test_the_newest_turn_is_told_in_its_own_words_alone(store: Store) -> None:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    assert await store.library.newest_turn(conversation_id) is None
    run_id, first = new_id(), say("Look.", new_turn=True)
    await store.commit(move(conversation_id, first, StartRun(run_id, first.message.id)))
    await store.commit(move(conversation_id, *asks_for_tools(run_id, ToolCall("c0", "bash", "{}"))))
    second = say("Fix it.\n" + "x" * 5_000, new_turn=True)
    await store.commit(move(conversation_id, second))
    calls = (ToolCall("c1", "patch", '{"path":"b.py"}'), ToolCall("c2", "patch", '{"path":"a.py"}'))
    await store.commit(move(conversation_id, *asks_for_tools(run_id, *calls)))
    results = [SaveToolResult(ToolResult(call.id, "x", ToolStatus.SUCCESS)) for call in calls]
    await store.commit(move(conversation_id, *results, reply(TextBlock("Done."), run_id=run_id)))
    assert await store.library.newest_turn(conversation_id) == TurnDigest(
        1, ("Fix it.\n" + "x" * 5_000)[:EXCERPT], "Done.", (("patch", 2),), ("b.py", "a.py")
    )


LISTED = ConversationQuery(scripted=False)


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        (ConversationChanges(model="demo/guide", unread=True, scroll_seq=3), []),
        (ConversationChanges(suggested_title="Of a model"), []),
        (ConversationChanges(title="Named"), ["s"]),
        (ConversationChanges(draft=""), ["s"]),
        (ConversationChanges(pinned=True), ["s"]),
        (ConversationChanges(unread=False), ["s"]),
    ],
)
async def test_only_what_a_person_does_brings_one_into_the_list(
    tmp_path: Path, changes: ConversationChanges, listed: list[str]
) -> None:
    store = await open_ephemeral_store()
    try:
        await store.create(NewConversation("s", tmp_path, "demo/guide", scripted=True), 1.0)
        assert await store.conversations(LISTED) == []
        assert [(one.id, one.scripted) for one in await store.conversations(ConversationQuery())] == [("s", True)]
        await store.change("s", changes, 2.0)
        assert [one.id for one in await store.conversations(LISTED)] == listed
    finally:
        await store.close()
