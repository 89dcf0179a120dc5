"""Older messages are summarized in the background after a run: when, what follows, and what stops it (SPEC CLAW-31)."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.background.after_run import is_due
from engine.context.assemble import SUMMARY as HEAD
from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted
from engine.machine.messages import TextBlock, Usage
from engine.machine.states import Idle
from engine.machine.views import CompactionCause, CompactionKind
from engine.updates import BackgroundSummary
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import WINDOW, Fail, Hang, Pause, Reply, Text

WANTED = "Write the summary now."
SUMMARY = Reply((Text("the plan is kept"),), usage=Usage(500, 40), when=WANTED)
SETTINGS = EngineSettings(compact_after_runs=True, compact_messages=6)


def answer(text: str = "word " * 200, tokens: int = 120) -> Reply:
    return Reply((Text(text),), usage=Usage(tokens - 20, 20), when="[go]")


async def talk(conversation: Conversation, *texts: str) -> None:
    for text in texts:
        assert isinstance(await conversation.say(f"[go] {text}"), Accepted)
        await conversation.wait_idle()


def told(harness: EngineHarness) -> list[bool]:
    return [update.active for update in harness.seen(BackgroundSummary)]


def summaries(harness: EngineHarness) -> int:
    return sum(WANTED in str(request.messages[-1].blocks) for request in harness.provider.requests)


@pytest.mark.parametrize(
    ("messages", "tokens", "due"),
    [(50, 20_000, False), (51, 20_000, True), (10, 150_000, False), (10, 150_001, True), (51, 0, True), (0, 0, False)],
)
def test_more_than_50_messages_or_more_than_three_quarters_of_the_window_are_due(
    messages: int, tokens: int, due: bool
) -> None:
    assert is_due(messages, tokens, 200_000, 50, 75) is due
    assert is_due(messages, tokens, 0, 0, 75) is False


async def test_all_but_the_last_four_messages_are_summarized_while_the_conversation_rests(tmp_path: Path) -> None:
    replies = [answer() for _ in range(4)] + [answer("after")]
    async with engine_harness(tmp_path, SUMMARY, *replies, settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        await until(lambda: conversation.record.summary)
        assert conversation.state == Idle(conversation.state.gen)
        assert conversation.record.context_start_seq == 5
        await talk(conversation, "4")
        sent = harness.provider.requests[-1].messages
        assert sent[0].blocks == (TextBlock(f"{HEAD}{conversation.record.summary}"),)
        assert [message.blocks[0] for message in sent[2::2]] == [
            TextBlock("[go] 2"),
            TextBlock("[go] 3"),
            TextBlock("[go] 4"),
        ]
        await until(lambda: told(harness) == [True, False])
        (made,) = await harness.store.library.compactions(conversation.id)
        facts = made.facts
        assert (facts.cause, facts.kind, facts.messages) == (CompactionCause.RESTED, CompactionKind.SUMMARY, 4)
        row = (await harness.store.messages(conversation.id))[8]
        size = f"120 → ~{facts.tokens_after} tokens · $0.01"
        words = f"Summarized 4 messages, kept 4 · {size}\n\n{conversation.record.summary}"
        assert row.blocks == (TextBlock(words),)


async def test_a_message_does_not_wait_for_the_summary_which_takes_effect_once_its_answer_is_there(
    tmp_path: Path,
) -> None:
    slow = Reply((Pause(0.3), Text("the plan is kept")), when=WANTED)
    async with engine_harness(tmp_path, slow, *[answer() for _ in range(6)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        await until(lambda: told(harness) == [True])
        await talk(conversation, "meanwhile")
        assert conversation.record.message_count == 10
        await until(lambda: conversation.record.summary)
        assert conversation.record.context_start_seq == 5
        assert summaries(harness) == 1


async def test_a_cancel_at_rest_stops_the_summary_and_changes_nothing(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when=WANTED)
    async with engine_harness(tmp_path, hangs, *[answer() for _ in range(6)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        await until(lambda: conversation.context.summarizing and told(harness) == [True])
        conversation.cancel()
        await until(lambda: not conversation.context.summarizing)
        assert (told(harness), conversation.record.summary) == ([True, False], "")
        assert await harness.store.library.compactions(conversation.id) == []


async def test_a_summary_on_request_ends_the_one_in_the_background(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when=WANTED)
    async with engine_harness(tmp_path, hangs, SUMMARY, *[answer() for _ in range(4)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        await until(lambda: told(harness) == [True])
        assert isinstance(await conversation.context.compact(), Accepted)
        await conversation.wait_idle()
        assert not conversation.context.summarizing
        assert conversation.record.summary.startswith("the plan is kept")
        (made,) = await harness.store.library.compactions(conversation.id)
        assert made.facts.cause is CompactionCause.ASKED


async def test_a_failure_changes_nothing_and_is_tried_again_after_the_next_run(tmp_path: Path) -> None:
    broken = Reply((Fail("no more today", retryable=False),), when=WANTED)
    async with engine_harness(tmp_path, broken, SUMMARY, *[answer() for _ in range(6)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        await until(lambda: told(harness) == [True, False])
        assert conversation.record.summary == ""
        await talk(conversation, "4")
        await until(lambda: conversation.record.summary)


async def test_it_is_off_by_itself_below_the_limits_and_where_the_user_said_never(tmp_path: Path) -> None:
    few = EngineSettings(compact_after_runs=True, compact_messages=0)
    for number, settings in enumerate((EngineSettings(compact_messages=6), few)):
        async with engine_harness(tmp_path / str(number), *[answer() for _ in range(5)], settings=settings) as harness:
            conversation = await harness.conversation()
            await talk(conversation, "0", "1", "2", "3", "4")
            assert (summaries(harness), conversation.context.summarizing) == (0, False)
    async with engine_harness(tmp_path / "never", *[answer() for _ in range(5)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await conversation.context.set_threshold(200)
        await talk(conversation, "0", "1", "2", "3", "4")
        assert (summaries(harness), conversation.context.summarizing) == (0, False)


async def test_a_summary_after_the_run_and_the_next_message_do_not_summarize_twice(tmp_path: Path) -> None:
    full = answer(tokens=WINDOW * 4 // 5)
    async with engine_harness(tmp_path, SUMMARY, *[full for _ in range(6)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2")
        await until(lambda: conversation.record.summary)
        await talk(conversation, "3")
        assert summaries(harness) == 1


async def test_an_attempt_is_remembered_by_the_next_process(tmp_path: Path) -> None:
    full = answer(tokens=WINDOW * 4 // 5)
    async with engine_harness(tmp_path, SUMMARY, *[full for _ in range(4)]) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        assert summaries(harness) == 1
    async with engine_harness(tmp_path, SUMMARY, full) as harness:
        again = await harness.engine.open(conversation.id)
        assert again.record.compacted_at == conversation.record.compacted_at == 7
        await talk(again, "4")
        assert summaries(harness) == 0, "two messages are too few for another"
