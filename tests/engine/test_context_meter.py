"""The meter (SPEC T-CTX): the provider's count, what holds without one, notices, and one value everywhere."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import Usage
from engine.ports import ModelRequest
from engine.providers.catalogue import SMALLEST_WINDOW, describe
from engine.updates import ContextChanged
from phoenix_tui.widgets.status_line import ContextUse, short_meter, warn_crossing
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Reply, Script, ScriptedProvider, Text

UNCOUNTED = Reply((Text("Yes."),), usage=Usage())


def counted(*numbers: int) -> Reply:
    return Reply((Text("Yes."),), usage=Usage(*numbers))


async def asked(harness: EngineHarness, times: int) -> Conversation:
    conversation = await harness.conversation()
    for _ in range(times):
        await conversation.say("go on")
        await conversation.wait_idle()
    return conversation


def meters(harness: EngineHarness) -> list[str]:
    return [short_meter(ContextUse(told.tokens, told.window, told.estimated)) for told in harness.seen(ContextChanged)]


@pytest.mark.parametrize(
    ("levels", "notices"),
    [((69, 71), 1), ((71, 73), 0), ((69, 71, 73), 1), ((69, 71, 60, 71), 2), ((89, 90), 1), ((60, 95), 1)],
)
def test_each_upward_crossing_is_noticed_once(levels: tuple[int, ...], notices: int) -> None:
    uses = [ContextUse(level * 1_000, 100_000) for level in levels]
    assert sum(bool(warn_crossing(*pair)) for pair in pairwise(uses)) == notices


async def test_used_are_all_tokens_of_the_last_reply(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, counted(1_000, 200, 30, 4_000)) as harness:
        conversation = await asked(harness, 1)
        record = conversation.record
        assert (record.context_tokens, record.context_estimated) == (5_230, False)
        report = await conversation.context.report()
        assert (report.tokens, report.estimated, report.measured.total) == (5_230, False, 5_230)


async def test_a_reply_without_counts_keeps_the_last_value_marked(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, counted(20_000, 100), UNCOUNTED, counted(40_000, 100)) as harness:
        conversation = await asked(harness, 2)
        assert (conversation.record.context_tokens, conversation.record.context_estimated) == (20_100, True)
        assert (await conversation.context.report()).estimated
        await conversation.say("go on")
        await conversation.wait_idle()
        assert [meter for meter in dict.fromkeys(meters(harness)) if meter] == ["ctx 10%", "ctx ~10%", "ctx 20%"]


def test_an_unknown_model_has_the_smallest_known_window() -> None:
    assert describe("somebody", "unheard-of").context_window == SMALLEST_WINDOW


async def test_what_one_conversation_taught_scales_the_estimate_of_the_next(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("Yes."),), usage=Usage(4_000, 10), always=True)) as harness:
        fresh = await harness.conversation()
        before = (await fresh.context.report()).tokens
        taught = await asked(harness, 1)
        await until(lambda: not taught.in_use)
        after = (await fresh.context.report()).tokens
    assert after == pytest.approx(before * min(max(4_000 / before, 0.5), 3), rel=0.15)


class CountingProvider(ScriptedProvider):
    """Counts 4,321 tokens in any request, once it no longer waits."""

    def __init__(self, *replies: Reply) -> None:
        super().__init__({"main": Script(replies)})
        self.waits: asyncio.Event | None = None
        self.counted: list[ModelRequest] = []

    async def count_tokens(self, request: ModelRequest) -> int | None:
        self.counted.append(request)
        if self.waits is not None:
            await self.waits.wait()
        return 4_321


async def test_the_provider_counts_a_window_of_which_only_an_estimate_is_known(tmp_path: Path) -> None:
    provider = CountingProvider(counted(1_000, 50), counted(2_000, 60))
    async with engine_harness(tmp_path, provider=provider) as harness:
        conversation = await asked(harness, 1)
        assert not await conversation.context.count(), "the reply was counted"
        copy = await harness.engine.fork(conversation.id, 1)
        assert (await copy.context.report()).estimated
        assert await copy.context.count()
        report, stored = await copy.context.report(), await harness.store.conversation(copy.id)
        assert stored is not None
        assert (report.tokens, report.estimated) == (stored.context_tokens, stored.context_estimated) == (4_321, False)
        (request,) = provider.counted
        assert request.tools == provider.requests[0].tools
        assert len(request.messages) == 1
        empty = await harness.conversation()
        assert not await empty.context.count(), "there is no message yet"


async def test_a_count_for_a_window_that_has_changed_is_dropped_and_nothing_waits_for_it(tmp_path: Path) -> None:
    provider = CountingProvider(UNCOUNTED, counted(2_000, 60))
    async with engine_harness(tmp_path, provider=provider) as harness:
        conversation = await asked(harness, 1)
        provider.waits = asyncio.Event()
        counts = asyncio.create_task(conversation.context.count())
        await until(lambda: len(provider.counted) == 1)
        await conversation.say("go on")
        await conversation.wait_idle()
        provider.waits.set()
        assert not await counts
        assert (conversation.record.context_tokens, conversation.record.context_estimated) == (2_060, False)


async def test_status_line_context_and_cost_have_the_counts_of_the_server(tmp_path: Path) -> None:
    replies = (counted(1_000, 50, 0, 0), counted(200, 60, 900, 1_000))
    async with engine_harness(tmp_path, *replies, settings=EngineSettings()) as harness:
        conversation = await asked(harness, 2)
        told = harness.seen(ContextChanged)[-1]
        report = await conversation.context.report()
        calls = await harness.store.library.calls(conversation.id)
        listed = (await harness.engine.list())[0]
        shown = {told.tokens, report.tokens, conversation.record.context_tokens, listed.context_tokens}
        assert shown == {200 + 60 + 900 + 1_000}
        assert sum(one.totals.tokens for one in calls) == told.used == 1_050 + 2_160
        assert conversation.record.totals.tokens == told.used
