"""Every sum of tokens and cost equals the count of the server (docs/decisions/accounting.md)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.conversation import Conversation
from engine.engine import ConversationOptions, Engine
from engine.executor.engine_settings import EngineSettings
from engine.executor.session_parts import CallLog, OpenCall
from engine.machine.messages import Usage
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.records import PermissionMode
from engine.records.runs import CallPurpose, CallStatus, Totals
from engine.store import Store
from engine.updates import CallEnded, RunEnded, TextArrived, Update
from tests.support.counting_server import MODEL, CountingServer
from tests.support.engine import engine_harness, until
from tests.support.loopback import Loopback, serve
from tests.support.one_provider import OneProvider
from tests.support.storage import query
from tests.support.waiting import poll

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
