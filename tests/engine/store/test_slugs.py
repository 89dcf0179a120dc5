"""Names of conversations that can be typed: from titles, unique, and found in databases from before they existed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ports import ConversationChanges
from engine.store import Store, StorePaths, open_store
from tests.support.storage import OUR_TERMS, move, new_conversation, new_id, query, say
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
