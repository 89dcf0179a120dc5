"""Model calls of web tools in the database: older files, sums, export and import."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from engine.machine.messages import Usage
from engine.ports import ConversationChanges, ImportTerms
from engine.records.runs import CallPurpose, CallStatus, ModelCall
from engine.store import StorePaths, open_store
from engine.store.migrations import MIGRATIONS, add_sampling_calls, add_web_calls, migrate
from engine.store.opening import connect
from tests.support.storage import new_conversation, query
from tools.contract import JsonObject

BEFORE = MIGRATIONS.index(add_web_calls)
SEARCH = ModelCall(
    "s", CallPurpose.WEB_SEARCH, CallStatus.OK, "anthropic", "m", Usage(5, 6, web_searches=3), cost_usd=0.03
)


async def test_calls_of_an_older_file_stay_in_their_order_with_no_searches(tmp_path: Path) -> None:
    paths = StorePaths.under(tmp_path)
    paths.database.parent.mkdir(parents=True, exist_ok=True)
    connection = connect(str(paths.database))
    migrate(connection, MIGRATIONS[:BEFORE])
    connection.execute(
        "INSERT INTO conversations (id, cwd, model, state, state_json, gen, totals_json, created_at, updated_at)"
        " VALUES ('c', '/', 'm', 'idle', '{}', 0, '{}', 1, 1)"
    )
    for name in ("b", "a"):
        connection.execute(
            "INSERT INTO model_calls VALUES (?, 'c', NULL, NULL, 'tracking', 'ok', 'p', 'm', 0, 0, 1, 2, 3, 4, 0, 0.5,"
            " 1, 1, '')",
            (name,),
        )
    indexes = "SELECT name FROM sqlite_master WHERE tbl_name = 'model_calls' AND type = 'index' ORDER BY name"
    before = [tuple(row) for row in connection.execute(indexes)]
    connection.close()
    await (await open_store(paths)).close()
    rows = query(paths.database, "SELECT id, purpose, cache_read_tokens, cost_usd, web_searches FROM model_calls")
    assert [tuple(row) for row in rows] == [("b", "tracking", 4, 0.5, 0), ("a", "tracking", 4, 0.5, 0)]
    assert [tuple(row) for row in query(paths.database, indexes)] == before


async def test_a_file_without_sampling_calls_takes_them_and_keeps_its_searches(tmp_path: Path) -> None:
    paths = StorePaths.under(tmp_path)
    paths.database.parent.mkdir(parents=True, exist_ok=True)
    connection = connect(str(paths.database))
    migrate(connection, MIGRATIONS[: MIGRATIONS.index(add_sampling_calls)])
    connection.execute(
        "INSERT INTO conversations (id, cwd, model, state, state_json, gen, totals_json, created_at, updated_at)"
        " VALUES ('c', '/', 'm', 'idle', '{}', 0, '{}', 1, 1)"
    )
    connection.execute(
        "INSERT INTO model_calls VALUES ('b', 'c', NULL, NULL, 'web_search', 'ok', 'p', 'm', 0, 0, 1, 2, 3, 4, 0, 0.5,"
        " 1, 1, '', 7)"
    )
    connection.close()
    store = await open_store(paths)
    call = ModelCall("s", CallPurpose.SAMPLING, CallStatus.OK, "p", "m", Usage(5, 6), cost_usd=0.25)
    await store.change("c", ConversationChanges(calls=(call,)), 2.0)
    sums = await store.library.calls("c")
    await store.close()
    assert [(one.purpose.value, one.totals.cost_usd, one.web_searches) for one in sums] == [
        ("web_search", 0.5, 7),
        ("sampling", 0.25, 0),
    ]


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
