"""Lists of names in one column: MCP servers that are off, and tools that were loaded."""

from __future__ import annotations

import pytest

from engine.ports import ConversationChanges
from engine.store import Store
from engine.store.names import are_names, decode_names, encode_names
from tests.support.storage import new_conversation


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}', "[null]", "[" * 5_000])
def test_a_damaged_column_is_no_name_and_is_not_imported(text: str) -> None:
    assert decode_names(text) == ()
    assert not are_names(text)


def test_names_come_back_as_they_were() -> None:
    names = ("b", "a", "ü'\"", "lone \ud800")
    assert decode_names(encode_names(names))[:3] == names[:3]
    assert (encode_names(()), are_names(""), are_names(encode_names(names))) == ("", True, True)
    assert not are_names(encode_names(("x" * 201,)))
    assert not are_names(encode_names(("x",) * 2_001))
    assert not are_names(7)


async def test_servers_that_are_off_and_loaded_tools_are_kept_with_the_conversation(store: Store) -> None:
    new = new_conversation()
    record = (await store.create(new, 1.0)).record
    changes = ConversationChanges(mcp_off=("files",), mcp_loaded=("mcp__a__b", "mcp__a__a"))
    await store.change(new.id, changes, 1.0)
    stored = await store.conversation(new.id)
    assert stored is not None
    assert (stored.record.mcp_off, stored.record.mcp_loaded) == (("files",), ("mcp__a__b", "mcp__a__a"))
    assert changes.apply(record, 1.0).mcp_off == ("files",)
