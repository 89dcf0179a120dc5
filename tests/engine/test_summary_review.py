"""A summary that the user has asked for is shown before it takes effect: taken, changed, made again or dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from engine.conversation import Conversation
from engine.executor.compacting import DISCARDED, TOO_LONG
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, DropSummary, Proposal, SummarizeAgain, SummaryDecision, TakeSummary
from engine.machine.messages import Role, TextBlock, Usage
from engine.machine.states import Compacting, Idle
from engine.updates import MessageSaved
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import Fail, Reply, Text

WANTED = "Write the summary now."
QUIET = EngineSettings(auto_title=False)
ANSWERS = [Reply((Text("word " * 200),), usage=Usage(100, 20), when="[go]") for _ in range(5)]


def made(text: str) -> Reply:
    return Reply((Text(text),), usage=Usage(500, 40), when=WANTED)


async def talked(harness: EngineHarness) -> Conversation:
    conversation = await harness.conversation()
    for number in range(5):
        assert isinstance(await conversation.say(f"[go] {number}"), Accepted)
        await conversation.wait_idle()
    return conversation


def notice(harness: EngineHarness) -> str:
    texts = [
        block.text
        for update in harness.seen(MessageSaved)
        if update.message.role is Role.SYSTEM
        for block in update.message.blocks
        if isinstance(block, TextBlock)
    ]
    return texts[-1]


class Reader:
    """Decides as prescribed, and keeps the shown proposals."""

    def __init__(self, *verdicts: Callable[[Proposal], SummaryDecision]) -> None:
        self.shown: list[Proposal] = []
        self._verdicts = list(verdicts)

    async def __call__(self, proposal: Proposal) -> SummaryDecision:
        self.shown.append(proposal)
        return self._verdicts.pop(0)(proposal)


def take(proposal: Proposal) -> SummaryDecision:
    return TakeSummary(proposal.summary)


async def reviewed(harness: EngineHarness, reader: Reader) -> Conversation:
    conversation = await talked(harness)
    assert isinstance(await conversation.context.compact("the names", reader), Accepted)
    await conversation.wait_idle()
    assert isinstance(conversation.state, Idle)
    return conversation


async def test_what_was_shown_is_what_the_model_gets(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, made("the plan"), *ANSWERS, settings=QUIET) as harness:
        reader = Reader(take)
        conversation = await reviewed(harness, reader)
        (shown,) = reader.shown
        assert shown.summary.startswith("the plan\n\nThe user's own words")
        assert (shown.summarized, shown.kept) == (6, 4)
        assert "tokens" in shown.sizes
        assert conversation.record.summary == shown.summary


async def test_a_changed_summary_takes_effect_as_it_was_written(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, made("the plan"), *ANSWERS, settings=QUIET) as harness:
        reader = Reader(lambda _: TakeSummary("my own words"))
        conversation = await reviewed(harness, reader)
        assert conversation.record.summary == "my own words"
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert stored.summary == "my own words"


async def test_another_one_is_made_with_the_hint_and_both_are_paid_for(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, made("first"), made("second"), *ANSWERS, settings=QUIET) as harness:
        reader = Reader(lambda _: SummarizeAgain("the tables"), take)
        conversation = await reviewed(harness, reader)
        assert [shown.summary.partition("\n")[0] for shown in reader.shown] == ["first", "second"]
        assert "the tables" in str(harness.provider.requests[-1].messages[-1].blocks)
        assert conversation.record.summary.startswith("second")
        assert conversation.record.totals.input_tokens == 5 * 100 + 2 * 500


async def test_what_cannot_be_done_is_said_and_the_last_summary_still_stands(tmp_path: Path) -> None:
    failing = Reply((Fail("Out of money.", kind="billing"),), when=WANTED)
    async with engine_harness(tmp_path, made("first"), failing, *ANSWERS, settings=QUIET) as harness:
        reader = Reader(lambda _: TakeSummary("long " * 5_000), lambda _: SummarizeAgain(""), take)
        conversation = await reviewed(harness, reader)
        assert [shown.problem for shown in reader.shown] == ["", TOO_LONG, "Out of money."]
        assert conversation.record.summary.startswith("first")


async def test_a_dropped_summary_changes_nothing(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, made("first"), *ANSWERS, settings=QUIET) as harness:
        conversation = await reviewed(harness, Reader(lambda _: DropSummary()))
        assert conversation.record.summary == ""
        assert notice(harness).startswith(DISCARDED)


async def test_esc_while_one_reads_changes_nothing_and_the_next_is_shown_to_nobody(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, made("first"), made("second"), *ANSWERS, settings=QUIET) as harness:
        conversation, reading = await talked(harness), asyncio.Event()

        async def reads(_: Proposal) -> SummaryDecision:
            reading.set()
            await asyncio.Event().wait()
            raise AssertionError

        await conversation.context.compact("", reads)
        await reading.wait()
        assert isinstance(conversation.state, Compacting)
        conversation.cancel()
        await conversation.wait_idle()
        assert conversation.record.summary == ""
        await conversation.context.compact()
        await until(lambda: conversation.record.summary.startswith("second"))
