"""Estimated tokens of texts, their learned ratio to real ones, and the list of what fills a window."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.context.estimate import LARGEST, MOST_MODELS, SAMPLED, SMALLEST, Calibration, rough_tokens, text_tokens
from engine.context.measure import describe_arguments
from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import Usage
from engine.ports import ModelRequest
from engine.providers.catalogue import SMALLEST_WINDOW, describe
from engine.updates import ContextChanged
from phoenix_tui.widgets.status_line import ContextUse, short_meter, warn_crossing
from tests.support.engine import EngineHarness, engine_harness, run_turn, until
from tests.support.scripted_provider import Reply, Script, ScriptedProvider, Text

PROSE = (
    "The quick brown fox jumps over the lazy dog, and then it goes home. Nobody knows why it did that; some say it was"
    " hungry, others that it wanted company. In the evening it came back and sat down by the river.\n"
)
CODE = textwrap.dedent(
    '''\
    def fitted(value: object, limit: int = 10) -> list[str]:
        """Cut each line to `limit` characters."""
        lines = []
        for line in str(value).splitlines():
            if len(line) > limit:
                line = line[: limit - 1] + "…"
            lines.append(line)
        return lines
    '''
)
ROW = {"id": 17, "name": "retry", "tags": ["a", "b"], "nested": {"ok": True, "size": 12.5}}
DICE = random.Random(1)
LOG = "2026-11-24 04:39:44 INFO worker[1234]: request 8f3a took 123 ms, status 200\n"
NESTED = "".join(f"{'    ' * DICE.randint(3, 9)}return value\n" for _ in range(100))
JAPANESE = "このドキュメントは、プログラムの使い方を説明します。設定を変更するには、ファイルを編集してください。"


@pytest.mark.parametrize(
    ("text", "o200k", "claude"),
    [
        (PROSE * 10, 480, 490),
        (CODE * 10, 730, 750),
        (json.dumps(ROW, indent=2) * 10, 521, 501),
        (base64.b64encode(DICE.randbytes(2_800)).decode(), 2_555, 2_634),
        (DICE.randbytes(1_900).hex(), 2_149, 2_206),
        (LOG * 20, 660, 560),
        (NESTED, 400, 301),
        (JAPANESE * 10, 291, 430),
    ],
    ids=["prose", "python", "json", "base64", "hex", "log", "nested", "japanese"],
)
def test_each_kind_of_text_is_counted_within_a_fifth_of_the_mean_of_two_tokenizers(
    text: str, o200k: int, claude: int
) -> None:
    assert abs(text_tokens(text) / ((o200k + claude) / 2) - 1) < 0.2


@pytest.mark.parametrize("count", [text_tokens, rough_tokens])
@given(st.text(max_size=300))
def test_a_text_has_no_tokens_exactly_where_it_is_empty_and_never_many_more_than_characters(
    count: Callable[[str], int], text: str
) -> None:
    tokens = count(text)
    assert (tokens > 0) == bool(text)
    assert tokens <= 1.2 * len(text) + 1


@pytest.mark.parametrize("piece", [PROSE, CODE, JAPANESE, LOG])
def test_a_long_text_is_estimated_from_parts_of_it_like_a_whole_one(piece: str) -> None:
    times = 40 * SAMPLED // len(piece)
    assert text_tokens(piece * times) == pytest.approx(text_tokens(piece * (SAMPLED // len(piece))) * 40, rel=0.1)


@pytest.mark.parametrize("sign", ["x", " ", "\n", "{", "7", "漢", "é", "\ud800", "\U0001f600", "aA"])
def test_a_text_of_one_sign_without_end_is_counted(sign: str) -> None:
    assert 0 < text_tokens(sign * 1_000_000) <= 2_000_000


def test_the_first_reply_sets_the_ratio_and_later_ones_move_it() -> None:
    calibration = Calibration()
    assert calibration.ratio("a/m") == 1.0
    calibration.learn("a/m", 1_000, 1_500)
    assert (calibration.ratio("a/m"), calibration.ratio("b/m")) == (1.5, 1.0)
    calibration.learn("a/m", 1_000, 500)
    assert calibration.ratio("a/m") == pytest.approx(1.2)


@pytest.mark.parametrize(("estimated", "real"), [(0, 100), (100, 0), (-1, 5), (5, -1)])
def test_a_count_of_nothing_teaches_nothing(estimated: int, real: int) -> None:
    calibration = Calibration()
    calibration.learn("a/m", estimated, real)
    assert calibration.ratio("a/m") == 1.0


@given(st.lists(st.tuples(st.integers(-5, 10**9), st.integers(-5, 10**15)), max_size=20))
def test_no_count_of_a_server_leads_out_of_the_bounds(pairs: list[tuple[int, int]]) -> None:
    calibration = Calibration()
    for estimated, real in pairs:
        calibration.learn("a/m", estimated, real)
        assert SMALLEST <= calibration.ratio("a/m") <= LARGEST


def test_the_model_learned_about_first_is_forgotten_when_there_are_too_many() -> None:
    calibration = Calibration()
    for number in range(MOST_MODELS + 1):
        calibration.learn(f"a/{number}", 100, 200)
    assert (calibration.ratio("a/0"), calibration.ratio("a/1")) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "a.py", "edits": [{"op": "replace", "old": "x", "new": "y"}]}, "a.py replace x y"),
        ({"all": True, "limit": 3, "then": None}, "true 3 null"),
        ({"deep": {"a": [1, [2, "three"]]}}, "1 2 three"),
        ({}, ""),
    ],
)
def test_arguments_are_said_without_names_and_brackets_however_deep_they_are(arguments: object, words: str) -> None:
    assert describe_arguments(json.dumps(arguments)) == words


def test_arguments_that_are_no_object_are_said_as_they_are() -> None:
    assert describe_arguments("[1") == "[1"


UNCOUNTED = Reply((Text("Yes."),), usage=Usage())


def counted(*numbers: int) -> Reply:
    return Reply((Text("Yes."),), usage=Usage(*numbers))


async def asked(harness: EngineHarness, times: int) -> Conversation:
    conversation = await harness.conversation()
    for _ in range(times):
        await run_turn(conversation, "go on")
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
        await run_turn(conversation, "go on")
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
        await run_turn(conversation, "go on")
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
