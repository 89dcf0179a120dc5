"""Conversations of scripts: in the database and found, but not in the list until a person makes one his."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.ports import ConversationChanges
from engine.records import ConversationQuery, NewConversation
from engine.store import open_ephemeral_store

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
