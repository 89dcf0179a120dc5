"""Model calls of web tools in the database: sums, export and import."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from engine.machine.messages import Usage
from engine.ports import ConversationChanges, ImportTerms
from engine.records.runs import CallPurpose, CallStatus, ModelCall
from engine.store import StorePaths, open_store
from tests.support.storage import new_conversation
from tools.contract import JsonObject

SEARCH = ModelCall(
    "s", CallPurpose.WEB_SEARCH, CallStatus.OK, "anthropic", "m", Usage(5, 6, web_searches=3), cost_usd=0.03
)


@pytest.mark.parametrize("older", [False, True])
async def test_searches_are_summed_exported_and_imported(tmp_path: Path, older: bool) -> None:
    store = await open_store(StorePaths.under(tmp_path))
    record = await store.create(new_conversation(), 1.0)
    await store.change(record.id, ConversationChanges(calls=(SEARCH,)), 2.0)
    (told,) = await store.library.calls(record.id)
    assert (told.purpose, told.web_searches, told.calls) == (CallPurpose.WEB_SEARCH, 3, 1)
    document: JsonObject = await store.library.export(record.id)
    if older:
        for row in cast("dict[str, list[JsonObject]]", document["tables"])["model_calls"]:
            del row["web_searches"]
    copied = await store.library.import_conversation(document, 3.0, ImportTerms(tmp_path, "demo/guide"))
    (again,) = await store.library.calls(copied.id)
    assert (again.calls, again.web_searches) == (1, 0 if older else 3)
    await store.close()
