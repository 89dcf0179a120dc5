"""The search index says what the tables say, whatever wrote or removed it; what is older is indexed in slices."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.machine.effects import SaveToolResult
from engine.machine.messages import TextBlock, ToolCall, ToolResult, ToolStatus
from engine.ports import ConversationChanges
from engine.ports.files import NewBranch
from engine.records import SearchHit
from engine.search import SearchQuery, Speaker, occurrences, parse_search
from engine.store import Store, StorePaths, open_store
from engine.store.message_search import FIRST_ID
from engine.store.opening import open_for_writing
from tests.support.storage import OUR_TERMS, asks_for_tools, move, new_conversation, query, reply, say
from tests.support.waiting import PATIENCE


@pytest.fixture
async def store(paths: StorePaths) -> AsyncIterator[Store]:
    opened = await open_store(paths)
    yield opened
    await opened.close()


async def found(store: Store, text: str, **options: int) -> tuple[SearchHit, ...]:
    return (await store.library.search(parse_search(text, cwd=Path("/")), seconds=PATIENCE, **options)).hits


async def a_conversation(store: Store, *texts: str, title: str = "", cwd: str = "/tmp") -> str:
    conversation_id = (await store.create(new_conversation(title, cwd), 1.0)).id
    for number, text in enumerate(texts):
        await store.commit(move(conversation_id, say(text), at=1000.0 + number))
    return conversation_id


async def with_a_command(store: Store, conversation_id: str, command: str, output: str) -> None:
    message, calls = asks_for_tools("", ToolCall("call-1", "bash", f'{{"command": "{command}"}}'))
    await store.commit(move(conversation_id, message, calls, at=2000.0))
    result = ToolResult("call-1", output, ToolStatus.SUCCESS)
    await store.commit(move(conversation_id, SaveToolResult(result), at=2001.0))


def check_index(path: Path) -> None:
    """The index holds exactly the texts of the tables."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("INSERT INTO search_index (search_index) VALUES ('integrity-check')")
        wanted = connection.execute(
            """SELECT id FROM messages WHERE silent = 0 AND role <> 'system' AND text <> ''
                UNION SELECT id FROM tool_calls WHERE status NOT IN ('queued', 'awaiting_approval', 'running')"""
        ).fetchall()
        assert {row[0] for row in wanted} == {row[0] for row in connection.execute("SELECT source FROM search_rows")}
    finally:
        connection.rollback()
        connection.close()


async def test_words_are_found_as_they_stand_in_any_case(store: Store) -> None:
    conversation_id = await a_conversation(store, "A needle in 100% hay_stack.", "Ein Ärger", title="Hay")
    (hit,) = await found(store, '"100% hay_"')
    assert hit == SearchHit(
        conversation_id, "Hay", Path("/tmp"), 1, Speaker.USER, "A needle in 100% hay_stack.", 1000.0
    )
    assert [each.seq for each in await found(store, "NEED stack")] == [1]
    assert [each.seq for each in await found(store, "ärger")] == [2]
    assert await found(store, "needles") == ()
    assert await found(store, "100%_") == ()


async def test_short_words_are_found_too(store: Store) -> None:
    await a_conversation(store, "go on", "gone", "x = 1")
    assert {each.seq for each in await found(store, "go")} == {1, 2}
    assert [each.seq for each in await found(store, "go on")] == [1, 2]
    assert [each.seq for each in await found(store, "=")] == [3]


async def test_what_a_tool_was_asked_and_what_it_said_are_found(store: Store) -> None:
    conversation_id = await a_conversation(store, "Look.")
    await with_a_command(store, conversation_id, r"grep \"lost\" notes", "notes: the lost key")
    (hit,) = await found(store, 'role:tool "grep "')
    assert (hit.speaker, hit.seq, hit.call_id, hit.created_at) == (Speaker.TOOL, 2, "call-1", 2001.0)
    assert hit.snippet == 'grep "lost" notes notes: the lost key'
    assert len(await found(store, "lost key")) == 1
    check_index(store.path)


async def test_filters_leave_out_what_is_not_meant(store: Store) -> None:
    here = await a_conversation(store, "blue whale", "blue sky", title="Sea", cwd="/tmp")
    there = await a_conversation(store, "blue car", title="Road", cwd="/usr")
    await store.commit(move(here, reply(TextBlock("blue answer")), at=170_000.0))  # between the two days in any zone

    async def seen(text: str) -> set[tuple[str, int]]:
        return {(each.conversation_id, each.seq) for each in await found(store, f"blue {text}")}

    assert await seen("") == {(here, 1), (here, 2), (here, 3), (there, 1)}
    assert await seen("-sky -car") == {(here, 1), (here, 3)}
    assert await seen("in:/tmp") == {(here, 1), (here, 2), (here, 3)}
    assert await seen("in:/tm") == set()
    assert await seen("in:/") == {(here, 1), (here, 2), (here, 3), (there, 1)}
    assert await seen("role:assistant") == {(here, 3)}
    assert await seen("title:roa") == {(there, 1)}
    assert await seen("after:1970-01-02 before:1970-01-04") == {(here, 3)}
    assert {each.seq for each in await found(store, "role:user title:sea")} == {1, 2}


async def test_the_archive_is_searched_and_the_trash_only_when_asked_for(store: Store) -> None:
    conversation_id = await a_conversation(store, "needle")
    await store.change(conversation_id, ConversationChanges(archived=True), 1.0)
    (hit,) = await found(store, "needle")
    assert hit.archived
    await store.change(conversation_id, ConversationChanges(deleted=True), 1.0)
    assert await found(store, "needle") == ()
    assert len(await found(store, "needle is:trash")) == 1


async def test_pages_follow_each_other_without_gap_or_repetition(store: Store) -> None:
    await a_conversation(store, *(f"needle {number}" for number in range(25)))
    question = parse_search("needle", cwd=Path("/"))
    seen: list[int] = []
    below: int | None = None
    for _ in range(30):
        answer = await store.library.search(question, limit=10, below=below, seconds=0.0)
        seen += [hit.seq for hit in answer.hits]
        below = answer.next
        if below is None:
            break
        assert answer.reached >= 1000.0
    assert sorted(seen) == list(range(1, 26))


async def test_a_hit_in_a_long_text_shows_its_surroundings_on_one_line(store: Store) -> None:
    await a_conversation(store, "a\n" * 500 + "NEEDLE" + " b" * 500)
    (hit,) = await found(store, "needle")
    assert hit.snippet.startswith("…a a")
    assert "NEEDLE b b" in hit.snippet
    assert hit.snippet.endswith("b…")


async def test_a_snippet_begins_with_a_whole_word(store: Store) -> None:
    await a_conversation(store, "It is the order of the two locks: `flush` takes the inner one first.")
    (hit,) = await found(store, '"inner one"')
    assert hit.snippet == "…of the two locks: `flush` takes the inner one first."


async def test_a_whole_word_comes_before_a_part_of_one_and_the_new_before_the_old(store: Store) -> None:
    await a_conversation(store, "the cat sat", "concatenate it", "one cat sat")
    assert [each.seq for each in await found(store, "cat")] == [3, 1, 2]


async def test_one_long_conversation_hides_no_other(store: Store) -> None:
    other = await a_conversation(store, "a cat slept")
    await a_conversation(store, *["one cat sat"] * 30)
    assert other in [each.conversation_id for each in (await found(store, "cat"))[:6]]


async def test_forks_imports_rewrites_and_purges_keep_the_index_true(store: Store) -> None:
    conversation_id = await a_conversation(store, "one needle", "two needles")
    await with_a_command(store, conversation_id, "ls", "a needle more")
    await store.library.fork(conversation_id, "copy", 5.0, up_to_seq=1)
    check_index(store.path)
    document = await store.library.export(conversation_id)
    imported = (await store.library.import_conversation(document, 6.0, OUR_TERMS)).id
    check_index(store.path)
    assert {each.conversation_id for each in await found(store, "needle")} == {conversation_id, "copy", imported}
    query(store.path, "UPDATE messages SET text = 'a pin' WHERE text = 'two needles'")
    query(store.path, "UPDATE messages SET silent = 1 WHERE text = 'one needle'")
    check_index(store.path)
    assert {each.snippet for each in await found(store, "role:user needle")} == set()
    await store.library.purge(conversation_id)
    check_index(store.path)
    await store.library.purge(imported)
    await store.library.purge("copy")
    assert query(store.path, "SELECT count(*) FROM search_rows") == [(0,)]
    assert query(store.path, "SELECT rowid FROM search_index WHERE search_index MATCH 'nee'") == []


UNINDEXED = """DELETE FROM search_rows; INSERT INTO search_index (search_index) VALUES ('delete-all');
    UPDATE search_backlog SET (below, total) = (SELECT max(rowid) + 1, max(rowid) FROM messages)"""
"""Makes every message one from before the index."""


async def older(paths: StorePaths, messages: int) -> str:
    """A file with a conversation from before the search index in it; gives its id."""
    open_for_writing(paths).close()
    connection = sqlite3.connect(paths.database)
    connection.executescript(
        """INSERT INTO conversations (id, cwd, model, state, state_json, gen, created_at, updated_at)
            VALUES ('old', '/tmp', 'demo/guide', 'idle', '{"type":"Idle","gen":0}', 0, 1, 1);
        INSERT INTO turns (id, conversation_id, turn_number, started_at) VALUES ('turn', 'old', 0, 1);"""
    )
    for number in range(1, messages + 1):
        connection.execute(
            """INSERT INTO messages (id, conversation_id, turn_id, seq, message_number, role, origin, content_json,
                text, created_at) VALUES (?, 'old', 'turn', ?, 0, 'assistant', 'llm', '[]', ?, ?)""",
            (f"m{number}", number, f"old needle {number} " + "x" * 2000, float(number)),
        )
        connection.execute(
            """INSERT INTO tool_calls (id, conversation_id, assistant_message_id, tool_use_id, ordinal, name,
                input_json, status, output_text, ended_at)
                VALUES (?, 'old', ?, ?, 0, 'bash', '{"command":"make"', 'success', ?, ?)""",
            (f"m{number}/0", f"m{number}", f"t{number}", f"made {number}", float(number)),
        )
    connection.executescript(UNINDEXED)
    connection.commit()
    connection.close()
    return "old"


async def test_what_is_older_than_the_index_is_indexed_in_slices_newest_first(paths: StorePaths) -> None:
    await older(paths, 900)
    store = await open_store(paths)
    assert await found(store, "needle") == ()
    new = await a_conversation(store, "a new needle")
    progress = await store.library.index_older()
    assert 0 < progress.done < progress.total == 900
    answer = await store.library.search(parse_search("needle", cwd=Path("/")), seconds=PATIENCE)
    assert 0.0 < answer.unindexed < 1.0
    assert {hit.seq for hit in answer.hits if hit.conversation_id == "old"} <= set(range(600, 901))
    query(store.path, "UPDATE messages SET text = 'a rewritten needle' WHERE id = 'm3'")
    query(store.path, "DELETE FROM tool_calls WHERE id = 'm4/0'")
    query(store.path, "DELETE FROM messages WHERE id = 'm4'")
    while progress.done < progress.total:
        progress = await store.library.index_older()
    check_index(store.path)
    assert [each.seq for each in await found(store, '"needle 17 "')] == [17]
    assert [each.seq for each in await found(store, '"rewritten needle"')] == [3]
    assert {each.seq for each in await found(store, '"made 20" make')} == {20, *range(200, 210)}
    (hit,) = await found(store, '"a new needle"')
    assert hit.conversation_id == new
    assert query(store.path, "SELECT id FROM search_rows WHERE source = 'm900/0'") == [(FIRST_ID - 1,)]
    await store.close()


async def test_find_tells_where_a_text_stands_in_one_conversation(store: Store) -> None:
    conversation_id = await a_conversation(store, "Needle needle", "nothing", "a NEEDLE")
    await with_a_command(store, conversation_id, "cat needle", "no such needle, needle")
    await a_conversation(store, "needle elsewhere")
    places = await store.library.find(conversation_id, "needle")
    assert [(each.seq, each.call_id, each.count) for each in places] == [(1, "", 2), (3, "", 1), (4, "call-1", 3)]
    assert await store.library.find(conversation_id, "") == ()
    assert [each.seq for each in await store.library.find(conversation_id, "no")] == [2, 4]


LETTERS = 'abAB üÜßẞİıσςΣé日本🦆%_"\\-:\n\t'


async def test_a_search_finds_exactly_what_reading_everything_would(store: Store) -> None:
    chance = random.Random(11)

    def text(least: int, most: int) -> str:
        return "".join(chance.choices(LETTERS, k=chance.randint(least, most)))

    texts = [text(1, 60) for _ in range(150)]
    await a_conversation(store, *texts)
    for _ in range(80):
        source = chance.choice(texts)
        start = chance.randrange(len(source))
        words = tuple(word for word in (source[start : start + chance.randint(1, 6)], text(1, 3)[:1]) if word.strip())
        wanted = {number for number, said in enumerate(texts, 1) if all(occurrences(said, (word,)) for word in words)}
        answer = await store.library.search(SearchQuery(words), seconds=60.0)
        assert {hit.seq for hit in answer.hits} == (wanted if words else set()), words


async def gone_back(store: Store, source: str, up_to_seq: int, at: float) -> str:
    """A rewind: a branch that takes the place of its source."""
    branch = NewBranch(source, f"{source}-{at:.0f}", up_to_seq, "", at)
    return (await store.turn_log.branch(branch, None)).record.id


async def test_what_two_branches_share_is_found_once_and_what_was_left_behind_still_is(store: Store) -> None:
    first = await a_conversation(store, "shared needle", "needle that was taken back", title="Hay")
    second = await gone_back(store, first, 1, 3000.0)
    await store.commit(move(second, say("needle instead"), at=3001.0))
    hits = {(hit.conversation_id, hit.seq, hit.left_behind) for hit in await found(store, "needle")}
    assert hits == {(second, 1, False), (second, 2, False), (first, 2, True)}

    await store.turn_log.make_head(first, second)
    hits = {(hit.conversation_id, hit.seq, hit.left_behind) for hit in await found(store, "needle")}
    assert hits == {(first, 1, False), (first, 2, False), (second, 2, True)}


async def test_branches_of_branches_share_what_they_share(store: Store) -> None:
    first = await a_conversation(store, "needle one", "needle two", "needle three")
    second = await gone_back(store, first, 2, 3000.0)
    third = await gone_back(store, second, 1, 4000.0)
    hits = {(hit.conversation_id, hit.seq) for hit in await found(store, "needle")}
    assert hits == {(third, 1), (second, 2), (first, 3)}
    await store.turn_log.make_head(first, third)
    sibling = await gone_back(store, first, 2, 5000.0)
    await store.turn_log.make_head(second, sibling)
    hits = {(hit.conversation_id, hit.seq) for hit in await found(store, "needle")}
    assert hits == {(second, 1), (second, 2), (first, 3)}


async def test_a_branch_in_the_trash_hides_nothing(store: Store) -> None:
    first = await a_conversation(store, "shared needle")
    second = await gone_back(store, first, 1, 3000.0)
    await store.change(second, ConversationChanges(deleted=True), 4000.0)
    assert [(hit.conversation_id, hit.left_behind) for hit in await found(store, "needle")] == [(first, False)]
    assert [hit.conversation_id for hit in await found(store, "needle is:trash")] == [second]
    await store.change(second, ConversationChanges(deleted=False), 5000.0)
    await store.change(first, ConversationChanges(deleted=True), 5000.0)
    assert [hit.conversation_id for hit in await found(store, "needle is:trash")] == [first]


async def test_a_shared_command_is_found_once(store: Store) -> None:
    first = await a_conversation(store, "look")
    await with_a_command(store, first, "make needle", "the output")
    await store.commit(move(first, say("and then"), at=2500.0))
    second = await gone_back(store, first, 3, 3000.0)
    assert [hit.conversation_id for hit in await found(store, '"make needle"')] == [second]
