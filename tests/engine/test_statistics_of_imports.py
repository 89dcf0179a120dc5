"""Calls of an import beside its original count once, by the count of the server that answered them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.executor.model_limits import SpendingCaps
from engine.machine.messages import Usage
from engine.ports import ImportTerms
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.records import PermissionMode
from engine.records.runs import StatisticsGroup, StatisticsQuery
from engine.store import Store, StorePaths, open_store
from tests.engine.test_accounting import run
from tests.engine.test_statistics_of_days import rests
from tests.support.counting_server import MODEL, CountingServer
from tests.support.engine import EngineHarness, engine_harness
from tests.support.loopback import serve
from tests.support.one_provider import OneProvider
from tests.support.storage import move, new_conversation, query, say, used
from tools.clock import SystemClock
from tools.contract import JsonObject

ALL = StatisticsQuery(tuple(StatisticsGroup), tools=True)


@asynccontextmanager
async def counted(folder: Path) -> AsyncGenerator[tuple[CountingServer, EngineHarness, Conversation]]:
    """A conversation with calls of tools, sub-agents, a retry and a title, beside the server's own count."""
    server, settings = CountingServer(), EngineSettings(auto_title=True)
    async with serve(server) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        async with engine_harness(folder, providers=OneProvider(provider), settings=settings) as home:
            options = ConversationOptions(home.cwd, f"anthropic/{MODEL}", permission_mode=PermissionMode.AUTO)
            conversation = await home.engine.create(options)
            for said in ("[tool] please do something", "[agents]", "[retry]"):
                await run(conversation, said)
                assert home.engine.sub_agents is not None
                await home.engine.sub_agents.wait_finished(conversation.id)
                await rests(conversation)
            yield server, home, conversation


async def is_once(home: EngineHarness, server: CountingServer, tools: dict[str, int]) -> None:
    """Every group of the statistics, and the caps, have the server's count."""
    found = await home.store.statistics.read(ALL)
    expected = (server.requests, server.told.context_tokens, round(server.cost, 9))
    total = found.total
    assert (total.calls, total.totals.tokens, round(total.totals.cost_usd or 0, 9)) == expected
    for group in (StatisticsGroup.DAY, StatisticsGroup.MODEL, StatisticsGroup.FOLDER, StatisticsGroup.PURPOSE):
        assert sum(row.calls for row in found.groups[group]) == server.requests, group
    assert {one.name: one.calls for one in found.tools} == tools
    caps = SpendingCaps(home.store.statistics, SystemClock(), 1e9, 1e9)
    await caps.update()
    assert round(caps._today.known_usd, 9) == round(server.cost, 9)
    assert round((await caps._sum_project(home.cwd)).known_usd, 9) == round(server.cost, 9)


TOOLS = {"bash": 1, "spawn_agents": 1, "submit_result": 2}


async def test_copies_count_once_however_they_are_copied_and_their_own_runs_count_too(tmp_path: Path) -> None:
    async with counted(tmp_path) as (server, home, conversation):
        await is_once(home, server, TOOLS)
        terms = ImportTerms(home.cwd, f"anthropic/{MODEL}", PermissionMode.AUTO)
        library = home.store.library
        first = await library.import_conversation(await library.export(conversation.id), 1.0, terms)
        second = await library.import_conversation(await library.export(first.id), 1.0, terms)
        fork = await home.engine.fork(second.id)
        await is_once(home, server, TOOLS)
        copy = await home.engine.open(first.id)
        for one in (copy, conversation, fork):
            await run(one, "[tool] on its own")
            await rests(one)
        await is_once(home, server, TOOLS | {"bash": 4})


async def test_a_copy_counts_once_its_original_is_deleted_permanently(tmp_path: Path) -> None:
    async with counted(tmp_path) as (server, home, conversation):
        document = await home.store.library.export(conversation.id)
        terms = ImportTerms(home.cwd, f"anthropic/{MODEL}", PermissionMode.AUTO)
        copies = [await home.store.library.import_conversation(document, 1.0, terms) for _ in range(2)]
        for gone in (conversation.id, copies[0].id):
            await home.engine.forget(gone)
            await home.store.library.purge(gone)
            await is_once(home, server, TOOLS)
        assert query(home.store.path, "SELECT DISTINCT conversation_id FROM copied_rows")
        again = await home.store.library.import_conversation(document, 1.0, terms)
        assert again.id == conversation.id, "its ids are free again"
        await is_once(home, server, TOOLS)


async def stored(store: Store, cost: float = 1.0) -> str:
    conversation_id = (await store.create(new_conversation(), 1.0)).id
    await store.commit(move(conversation_id, say("go"), used(Usage(1, 1), cost)))
    return conversation_id


def marks(document: JsonObject) -> list[JsonObject]:
    tables = cast("dict[str, list[JsonObject]]", document["tables"])
    return tables["copied_rows"]


async def test_a_file_cannot_make_calls_of_another_conversation_copies(tmp_path: Path) -> None:
    store = await open_store(StorePaths.under(tmp_path / "one"))
    victim, other = await stored(store, 5.0), await stored(store)
    ((victims_call,),) = query(store.path, "SELECT id FROM model_calls WHERE conversation_id = ?", victim)
    ((own_call,),) = query(store.path, "SELECT id FROM model_calls WHERE conversation_id = ?", other)
    document = await store.library.export(other)
    marks(document).extend([
        {"id": str(victims_call), "conversation_id": other, "origin": str(own_call)},
        {"id": str(own_call), "conversation_id": victim, "origin": "nothing-here"},
        {"id": str(own_call), "conversation_id": other},
    ])  # fmt: skip
    await store.library.import_conversation(document, 1.0, ImportTerms(tmp_path, "demo/guide"))
    total = (await store.statistics.read(ALL)).total
    victims = query(store.path, "SELECT count(*) FROM copied_rows WHERE id = ?", str(victims_call))
    await store.close()
    assert victims == [(0,)]
    assert total.known_cost_usd >= 6.0


async def test_a_file_on_a_machine_without_the_original_counts_whole_and_then_once(tmp_path: Path) -> None:
    one = await open_store(StorePaths.under(tmp_path / "one"))
    original = await stored(one)
    terms = ImportTerms(tmp_path, "demo/guide")
    copy = await one.library.import_conversation(await one.library.export(original), 1.0, terms)
    documents = [await one.library.export(each) for each in (copy.id, original)]
    await one.close()
    two = await open_store(StorePaths.under(tmp_path / "two"))
    sums: list[float] = []
    for document in documents:
        await two.library.import_conversation(document, 1.0, terms)
        sums.append((await two.statistics.read(ALL)).total.known_cost_usd)
    await two.close()
    assert sums == [1.0, 1.0]
