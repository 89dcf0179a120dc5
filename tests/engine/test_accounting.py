"""Money and tokens of calls, and their sums by day and of imported conversations."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.engine import ConversationOptions, Engine
from engine.executor.engine_settings import EngineSettings
from engine.executor.model_limits import SpendingCaps
from engine.executor.session_parts import CallLog, OpenCall
from engine.machine.messages import Usage
from engine.ports import ConversationChanges, ImportTerms
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.records import PermissionMode
from engine.records.runs import CallGroup, CallPurpose, CallStatus, StatisticsGroup, StatisticsQuery, Totals
from engine.store import Store, StorePaths, open_store
from engine.updates import CallEnded, RunEnded, TextArrived, Update
from phoenix_tui.features.context_window import StatisticsBy, statistics_report
from tests.support.counting_server import MODEL, CountingServer
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.loopback import Loopback, serve
from tests.support.one_provider import OneProvider
from tests.support.storage import move, new_conversation, query, say, used
from tests.support.waiting import poll
from tools.clock import SystemClock
from tools.contract import JsonObject

SUMS = """sum(input_tokens), sum(output_tokens), sum(cache_creation_tokens), sum(cache_read_tokens)"""


@dataclass
class Office:
    """An engine beside a server that counts."""

    engine: Engine
    store: Store
    server: CountingServer
    loopback: Loopback
    cwd: Path

    async def conversation(self) -> Conversation:
        options = ConversationOptions(self.cwd, f"anthropic/{MODEL}", permission_mode=PermissionMode.AUTO)
        return await self.engine.create(options)

    def sums(self, where: str) -> Usage:
        (row,) = query(self.store.path, f"SELECT {SUMS} FROM model_calls WHERE {where}")
        return Usage(*(int(str(one or 0)) for one in row))

    def cost(self, sql: str) -> float:
        (row,) = query(self.store.path, sql)
        return round(float(str(row[0] or 0)), 9)


@asynccontextmanager
async def office(home: Path, settings: EngineSettings | None = None) -> AsyncIterator[Office]:
    server = CountingServer()
    async with serve(server) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        try:
            async with engine_harness(home, providers=OneProvider(provider), settings=settings) as harness:
                yield Office(harness.engine, harness.store, server, loopback, harness.cwd)
        finally:
            await provider.close()


async def run(conversation: Conversation, text: str) -> None:
    """Say something and wait for its end; what never ends is stopped once its first words are there."""
    ended, written = asyncio.Event(), asyncio.Event()

    def follow(update: Update) -> None:
        if isinstance(update, RunEnded):
            ended.set()
        if isinstance(update, TextArrived):
            written.set()

    leave = await conversation.subscribe(follow)
    await conversation.say(text)
    if "[stop]" in text:
        await written.wait()
        conversation.cancel()
    await ended.wait()
    await conversation.wait_idle()
    leave()


@pytest.mark.parametrize(
    ("said", "statuses", "retries"),
    [
        ("plain", ["ok"], 0),
        ("[tool]", ["ok", "ok"], 0),
        ("[retry]", ["failed", "ok"], 1),
        ("[broken]", ["failed", "ok"], 1),
        ("[cut]", ["ok", "ok"], 0),
        ("[stop]", ["cancelled"], 0),
        ("[refuse]", ["ok"], 0),
    ],
)
async def test_however_a_call_ends_it_is_counted_in_its_run_trace_and_conversation(
    tmp_path: Path, said: str, statuses: list[str], retries: int
) -> None:
    async with office(tmp_path) as at:
        conversation = await at.conversation()
        calls: list[CallEnded] = []
        await conversation.subscribe(lambda update: calls.append(update) if isinstance(update, CallEnded) else None)
        await run(conversation, said)
        told, cost = at.server.told, round(at.server.cost, 9)
        rows = query(at.store.path, "SELECT status FROM model_calls ORDER BY rowid")
        assert [str(row[0]) for row in rows] == statuses
        assert [each.call.status for each in calls] == statuses
        assert at.sums("1") == told == sum((each.call.usage for each in calls), Usage())
        (record,) = await at.store.library.runs(conversation.id, 5)
        assert (record.usage, round(record.cost_usd or 0, 9)) == (told, cost)
        assert query(at.store.path, "SELECT retries FROM runs") == [(retries,)]
        assert query(at.store.path, "SELECT input_tokens, output_tokens FROM traces") == [
            (told.input_tokens, told.output_tokens)
        ]
        assert at.cost("SELECT cost_usd FROM traces") == cost
        spans = query(at.store.path, "SELECT status, input_tokens FROM spans WHERE kind = 'llm' ORDER BY rowid")
        assert [str(row[0]) for row in spans] == statuses
        totals = conversation.record.totals
        stored = await at.store.conversation(conversation.id)
        assert stored is not None
        assert stored.totals == totals
        assert (totals.tokens, round(totals.cost_usd or 0, 9)) == (told.context_tokens, cost)
        (replies,) = await at.store.library.calls(conversation.id)
        assert (replies.purpose, replies.calls, replies.totals) == ("reply", len(statuses), totals)
        ends = statuses.count("failed"), statuses.count("cancelled"), retries
        assert (replies.failed, replies.cancelled, replies.retries) == ends


def rounded(spent: Totals) -> Totals:
    """The same sum without the last bits, which depend on the order of addition."""
    return replace(spent, cost_usd=None if spent.cost_usd is None else round(spent.cost_usd, 9))


@pytest.mark.slow
async def test_a_whole_day_adds_up_to_what_the_server_counted(tmp_path: Path) -> None:
    settings = EngineSettings(auto_title=True, turn_summaries=True)
    kinds = ("plain", "[tool]", "[cut]", "[refuse]", "[stop]", "[agents]")
    async with office(tmp_path, settings) as at:
        conversations = [await at.conversation() for _ in range(10)]

        async def works(number: int, conversation: Conversation) -> None:
            for turn in range(9):
                await run(conversation, f"{kinds[(number + turn) % len(kinds)]} {number}.{turn}")
            await run(conversation, f"{('[broken]', '[retry]')[number % 2]} {number}")

        await asyncio.gather(*(works(number, each) for number, each in enumerate(conversations)))
        await conversations[0].context.compact()
        await conversations[0].wait_idle()
        await conversations[1].side.ask("What was it about?")
        fork = await at.engine.fork(conversations[2].id)
        await run(fork, "[tool] in the copy")
        assert at.engine.sub_agents is not None
        for each in conversations:
            await at.engine.sub_agents.wait_finished(each.id)
        await until(lambda: not _beside())
        assert query(at.store.path, "SELECT count(*) FROM model_calls") == [(at.server.requests,)]
        told, cost = at.server.told, round(at.server.cost, 9)
        assert at.sums("1") == told
        assert at.cost("SELECT sum(cost_usd) FROM model_calls") == cost
        assert at.cost("SELECT sum(totals_json ->> '$.cost_usd') FROM conversations") == cost
        beside = at.cost("SELECT sum(cost_usd) FROM model_calls WHERE run_id IS NULL")
        assert round(at.cost("SELECT sum(cost_usd) FROM runs") + beside, 9) == cost
        assert round(at.cost("SELECT sum(cost_usd) FROM traces") + beside, 9) == cost
        assert query(at.store.path, "SELECT sum(retries) FROM runs") == [(at.server.failed,)] == [(10,)]
        assert query(at.store.path, "SELECT count(*) FROM runs WHERE status <> 'running' AND ended_at") >= [(100,)]
        spent = Totals()
        for row in (*conversations, fork):
            stored = await at.store.conversation(row.id)
            assert stored is not None
            assert rounded(stored.spent) == rounded(row.record.spent)
            spent = spent.plus(stored.spent)
        assert (spent.tokens, round(spent.cost_usd or 0, 9)) == (told.context_tokens, cost)
        purposes = {str(row[0]) for row in query(at.store.path, "SELECT DISTINCT purpose FROM model_calls")}
        assert purposes == {"reply", "title", "turn_summary", "compaction", "aside"}
        by_purpose = [await at.store.library.calls(each.id) for each in (*conversations, fork)]
        own = [one for sums in by_purpose for one in sums]
        together = [each.record.totals for each in (*conversations, fork)]
        assert sum(one.totals.tokens for one in own) == sum(each.tokens for each in together)
        assert round(sum(one.totals.cost_usd or 0 for one in own), 9) == round(
            sum(each.cost_usd or 0 for each in together), 9
        )


def _beside() -> list[asyncio.Task[object]]:
    """Questions beside runs that are not answered yet."""
    names = {"TurnNotes._note", "Titler._name"}
    return [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "") in names]


def ended(log: CallLog, *names: str) -> None:
    for name in names:
        call = log.begin(OpenCall(name, CallPurpose.REPLY, "anthropic/model", 1.0, 1.0, usage=Usage(1, 1)))
        log.end(call, CallStatus.OK, 2.0)


async def test_who_is_cancelled_at_a_price_leaves_every_call_to_the_next() -> None:
    log, looked, go_on = CallLog(), threading.Event(), threading.Event()
    asked: list[str] = []

    def slow(reference: str, usage: Usage) -> float | None:
        asked.append(reference)
        if len(asked) == 2:
            looked.set()
            go_on.wait()
        return 0.5

    ended(log, "a", "b", "c")
    taking = asyncio.create_task(log.take(slow))
    assert await poll(looked.is_set)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    go_on.set()
    ended(log, "d")
    taken = await log.take(slow)
    assert [(call.id, call.cost_usd) for call in taken] == [(name, 0.5) for name in "abcd"]
    assert await log.take(slow) == ()


async def test_calls_that_end_while_prices_are_looked_up_are_taken_too() -> None:
    log = CallLog()

    def price(reference: str, usage: Usage) -> float | None:
        if "late" not in [call.id for _, call in log._ended]:
            ended(log, "late")
        return 0.5

    ended(log, "early")
    assert [call.id for call in await log.take(price)] == ["early", "late"]


DATE = len("2026-11-25")
"""Characters of a key that is a day; ids and folders are longer."""
ALL = StatisticsQuery(tuple(StatisticsGroup), tools=True)


@dataclass
class DayClock(SystemClock):
    """The time of this machine, some days ago."""

    back: int = 0

    def now(self) -> float:
        return time.time() - self.back * 86_400

    @property
    def day(self) -> str:
        return time.strftime("%Y-%m-%d", time.localtime(self.now()))


@dataclass
class Count:
    """The server's sums, split by what a test knows of each time: nothing else runs meanwhile."""

    server: CountingServer
    by: dict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))
    cost: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _told: Usage = field(default_factory=Usage)
    _cost: float = 0.0

    def note(self, *keys: str) -> None:
        """Count what the server told since the last note under these keys."""
        told, cost = self.server.told, self.server.cost
        for key in keys:
            self.by[key] += Usage(
                told.input_tokens - self._told.input_tokens,
                told.output_tokens - self._told.output_tokens,
                told.cache_creation_tokens - self._told.cache_creation_tokens,
                told.cache_read_tokens - self._told.cache_read_tokens,
            )
            self.cost[key] += cost - self._cost
        self._told, self._cost = told, cost


def sums(rows: tuple[CallGroup, ...]) -> dict[str, tuple[int, float | None]]:
    return {row.key: (row.totals.tokens, round(row.totals.cost_usd or 0, 9)) for row in rows}


async def rests(conversation: Conversation) -> None:
    """Wait until titles and the like are answered too."""
    await conversation.wait_idle()
    names = {"TurnNotes._note", "Titler._name"}
    await until(lambda: not [t for t in asyncio.all_tasks() if getattr(t.get_coro(), "__qualname__", "") in names])


async def test_every_group_equals_the_count_of_the_server(tmp_path: Path) -> None:
    server, clock = CountingServer(), DayClock()
    settings = EngineSettings(auto_title=True, turn_summaries=True)
    async with serve(server) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))
        async with engine_harness(tmp_path, providers=OneProvider(provider), settings=settings, clock=clock) as home:
            count, engine = Count(server), home.engine
            assert engine.sub_agents is not None
            (tmp_path / "other").mkdir()
            folders = (home.cwd, tmp_path / "other")
            conversations = [
                await engine.create(
                    ConversationOptions(folder, f"anthropic/{MODEL}", permission_mode=PermissionMode.AUTO)
                )
                for folder in folders
            ]
            for clock.back in (9, 3, 0):
                for conversation, folder in zip(conversations, folders, strict=True):
                    for said in ("[tool]", "[agents]", "[retry]", "[stop]", "[cut]"):
                        await run(conversation, f"{said} {clock.back}")
                        await engine.sub_agents.wait_finished(conversation.id)
                        await rests(conversation)
                    count.note(clock.day, str(folder), conversation.id, "all")
            await conversations[0].side.ask("What was it about?")
            count.note(clock.day, str(folders[0]), conversations[0].id, "all")
            fork = await engine.fork(conversations[0].id)
            await run(fork, "[tool] in the copy")
            await rests(fork)
            count.note(clock.day, str(folders[0]), fork.id, "all")
            await engine.change(conversations[1].id, ConversationChanges(deleted=True))  # the trash counts

            found = await home.store.statistics.read(ALL)
            expected = {key: (count.by[key].context_tokens, round(count.cost[key], 9)) for key in count.by}
            assert (found.total.totals.tokens, round(found.total.totals.cost_usd or 0, 9)) == expected["all"]
            assert (found.total.calls, found.total.failed) == (server.requests, server.failed)
            assert found.total.cancelled == 6
            assert found.total.retries == server.failed == 3
            ids = {each.id for each in (*conversations, fork)}
            days, places = {key for key in count.by if len(key) == DATE}, {str(folder) for folder in folders}
            for group, keys in (
                (StatisticsGroup.DAY, days),
                (StatisticsGroup.FOLDER, places),
                (StatisticsGroup.CONVERSATION, ids),
            ):
                assert sums(found.groups[group]) == {key: expected[key] for key in keys}, group
            assert sums(found.groups[StatisticsGroup.MODEL]) == {f"anthropic/{MODEL}": expected["all"]}
            assert {row.key for row in found.groups[StatisticsGroup.PURPOSE]} == {
                "reply", "title", "turn_summary", "aside",
            }  # fmt: skip
            (agents,) = found.groups[StatisticsGroup.AGENT]
            assert (agents.calls, agents.conversations) == (12, 12)
            assert agents.totals.cost_usd == pytest.approx(found.total.agents_cost_usd)
            tools = {one.name: one.calls for one in found.tools}
            assert tools == {"bash": 7, "spawn_agents": 6, "submit_result": 12}  # the copied calls count once
            week = await statistics_report(home.store.statistics, StatisticsBy.DAY, 7, time.time())
            assert [row.key for row in week.rows] == sorted(days)[:0:-1]
            assert query(home.store.path, "SELECT count(*) FROM model_calls") == [(found.total.calls,)]


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
