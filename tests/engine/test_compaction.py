"""A window that fills up: older messages are summarized in a run, or in the background after it (SPEC CLAW-31)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.background.after_run import count_said, is_due
from engine.context.assemble import SUMMARY as HEAD
from engine.context.assemble import UNDERSTOOD
from engine.conversation import Conversation
from engine.executor import compacting
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted, Refused
from engine.machine.messages import Role, TextBlock, ToolUseBlock, Usage
from engine.machine.states import AwaitingLlm, Compacting, CompactingContext, Errored, Idle
from engine.machine.views import CompactionCause, CompactionKind
from engine.ports import ModelInfo, ModelMessage, ModelRequest
from engine.updates import BackgroundSummary, ContextChanged, MessageSaved, Noticed
from tests.support.engine import EngineHarness, engine_harness, until
from tests.support.scripted_provider import WINDOW, Fail, Hang, Pause, Reply, ScriptedCall, ScriptPart, Text

FULL = Usage(input_tokens=WINDOW * 3 // 4, output_tokens=0)
"""Exactly the threshold of SPEC DEC-12."""
NEARLY = Usage(input_tokens=WINDOW * 3 // 4 - 1, output_tokens=0)
FEW = Usage(100, 20)
WANTED = "Write the summary now."
SUMMARY = Reply((Text("the plan is kept"),), usage=Usage(500, 40), when=WANTED)
QUIET = EngineSettings(auto_title=False)


def answer(text: str = "word " * 200, usage: Usage = FEW) -> Reply:
    return Reply((Text(text),), usage=usage, when="[go]")


def fails(*parts: ScriptPart) -> Reply:
    return Reply(parts, when=WANTED)


def notices(harness: EngineHarness) -> list[str]:
    return [
        block.text
        for update in harness.seen(MessageSaved)
        if update.message.role is Role.SYSTEM
        for block in update.message.blocks
        if isinstance(block, TextBlock)
    ]


async def talk(conversation: Conversation, *texts: str) -> None:
    for text in texts:
        assert isinstance(await conversation.say(f"[go] {text}"), Accepted)
        await conversation.wait_idle()


async def talked(harness: EngineHarness, count: int) -> Conversation:
    conversation = await harness.conversation()
    await talk(conversation, *(str(number) for number in range(count)))
    return conversation


def is_summary(request: ModelRequest) -> bool:
    return WANTED in str(request.messages[-1].blocks)


def summaries(harness: EngineHarness) -> int:
    return sum(map(is_summary, harness.provider.requests))


async def test_a_message_into_a_full_window_is_answered_after_older_ones_were_summarized(tmp_path: Path) -> None:
    replies = [answer() for _ in range(3)] + [answer(usage=FULL), answer("after")]
    async with engine_harness(tmp_path, SUMMARY, *replies, settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await talk(conversation, "five")
        summary, last = harness.provider.requests[-2:]
        assert is_summary(summary)
        assert summary.tools == ()
        assert last.messages[0].blocks[0] == TextBlock(
            f"{HEAD}the plan is kept\n\nThe user's own words, newest first:\n- [go] 1\n- [go] 0"
        )
        assert last.messages[1].blocks == (TextBlock(UNDERSTOOD),)
        assert last.messages[-1] == ModelMessage(Role.USER, (TextBlock("[go] five"),))
        assert notices(harness)[0].startswith("Summarized 4 messages, kept 5 · 150k → ~")
        record = await harness.store.conversation(conversation.id)
        assert record is not None
        assert (record.summary, record.context_start_seq) == (conversation.record.summary, 5)
        assert len(await harness.store.messages(conversation.id)) == conversation.record.message_count == 11


async def test_what_came_before_a_message_is_summarized_and_the_rest_stays_word_for_word(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SUMMARY, *[answer() for _ in range(4)], settings=QUIET) as harness:
        conversation = await talked(harness, 3)
        assert isinstance(await conversation.context.compact(before=3), Accepted)
        await conversation.wait_idle()
        assert (conversation.record.context_start_seq, conversation.state) == (3, Idle(conversation.state.gen))
        await talk(conversation, "last")
        sent = [str(message.blocks) for message in harness.provider.requests[-1].messages if message.role is Role.USER]
        assert [
            text in said for text, said in zip((HEAD[:20], "[go] 1", "[go] 2", "[go] last"), sent, strict=True)
        ] == ([True] * 4)


async def test_before_the_first_message_there_is_nothing_to_summarize(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SUMMARY, *[answer() for _ in range(4)], settings=QUIET) as harness:
        conversation = await talked(harness, 3)
        assert isinstance(await conversation.context.compact(before=1), Accepted)
        await conversation.wait_idle()
        assert (summaries(harness), conversation.record.context_start_seq) == (0, 0)
        assert notices(harness) == [compacting.NOTHING_BEFORE]


async def test_below_the_threshold_and_where_it_is_never_nothing_is_summarized(tmp_path: Path) -> None:
    replies = [answer(usage=NEARLY) for _ in range(6)] + [answer(usage=FULL) for _ in range(3)]
    async with engine_harness(tmp_path, SUMMARY, *replies, settings=QUIET) as harness:
        conversation = await talked(harness, 6)
        await conversation.context.set_threshold(200)
        await talk(conversation, "a", "b", "c")
        assert summaries(harness) == 0
        assert (await conversation.context.report()).compact_percent > 100


async def test_a_lower_threshold_of_the_conversation_counts_and_is_kept(tmp_path: Path) -> None:
    half = Usage(WINDOW // 2, 0)
    async with engine_harness(tmp_path, SUMMARY, *[answer(usage=half) for _ in range(9)], settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await conversation.context.set_threshold(50)
        await talk(conversation, "five")
        assert summaries(harness) == 1
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert stored.compact_percent == 50


async def test_a_full_window_in_the_midst_of_tools_is_summarized_again_only_after_six_messages(tmp_path: Path) -> None:
    def call() -> Reply:
        return Reply((ScriptedCall("bash", '{"command": "x"}'),), usage=FULL, when="[go]")

    replies = [answer() for _ in range(4)] + [call(), call(), answer("done")]
    async with engine_harness(tmp_path, SUMMARY, *replies, settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await talk(conversation, "work")
        assert [is_summary(request) for request in harness.provider.requests[4:]] == [False, True, False, False]
        assert isinstance(conversation.state, Idle)
        assert harness.provider.requests[-1].messages[0].blocks[0] != TextBlock("[go] 0")


async def test_an_overflow_is_summarized_once_and_asked_again_and_then_an_error(tmp_path: Path) -> None:
    full = Fail("prompt is too long", "invalid_request", retryable=False, context_overflow=True)
    replies = [answer() for _ in range(4)] + [Reply((full,), when="[go]"), answer("fits now")]
    async with engine_harness(tmp_path, SUMMARY, *replies, settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await talk(conversation, "more")
        assert isinstance(conversation.state, Idle)
        assert (await harness.store.messages(conversation.id))[-1].blocks == (TextBlock("fits now"),)
    replies = [answer() for _ in range(4)] + [Reply((full,), when="[go]"), Reply((full,), when="[go]")]
    async with engine_harness(tmp_path / "again", SUMMARY, *replies, settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await talk(conversation, "more")
        assert isinstance(conversation.state, Errored)
        assert conversation.state.message.startswith("The conversation no longer fits the model's window: prompt is")


async def test_the_user_summarizes_with_a_wish(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SUMMARY, *[answer() for _ in range(5)], settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        assert isinstance(await conversation.context.compact("keep the table names"), Accepted)
        assert isinstance(await conversation.wait_idle(), Idle)
        assert "keep the table names" in str(harness.provider.requests[-1].messages)
        told = harness.seen(ContextChanged)[-1]
        assert told.estimated
        assert 0 < told.tokens < 120
        assert conversation.record.totals.input_tokens == 4 * 100 + 500
        assert f"{conversation.record.totals.cost_usd:.2f}" == "0.05"
        await talk(conversation, "go on")
        assert harness.provider.requests[-1].messages[0].blocks[0] == TextBlock(HEAD + conversation.record.summary)


async def test_a_second_summary_takes_the_first_one_in(tmp_path: Path) -> None:
    second = Reply((Text("all of it"),), when=WANTED)
    async with engine_harness(tmp_path, SUMMARY, second, *[answer() for _ in range(9)], settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await conversation.context.compact()
        await conversation.wait_idle()
        await talk(conversation, "a", "b", "c", "d")
        await conversation.context.compact()
        await conversation.wait_idle()
        assert "the plan is kept" in str(harness.provider.requests[-1].messages)
        assert conversation.record.summary.startswith("all of it")
        assert [view.start_seq for view in conversation.record.earlier_views] == [0, 5]


BROKEN = (
    (fails(Fail("no more today", retryable=False)), "Older messages were not summarized: no more today"),
    (fails(Text("   ")), compacting.EMPTY),
    (fails(Text("x" * 90_000)), compacting.TOO_LONG),
    (fails(Hang()), "The summary took longer than 1 s; nothing was changed"),
)


@pytest.mark.parametrize(("reply", "reason"), BROKEN, ids=["failure", "empty", "longer", "slow"])
async def test_what_goes_wrong_leaves_everything_as_it_was(tmp_path: Path, reply: Reply, reason: str) -> None:
    settings = replace(QUIET, summary_timeout=0.6)
    async with engine_harness(tmp_path, reply, *[answer() for _ in range(5)], settings=settings) as harness:
        conversation = await talked(harness, 4)
        before = conversation.record
        await conversation.context.compact()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert notices(harness) == [reason]
        assert conversation.record.view == before.view
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert stored.view == before.view
        await talk(conversation, "still here")
        assert len(harness.provider.requests[-1].messages) == 9


async def test_a_failed_summary_lets_the_message_through_and_is_not_tried_at_every_next_one(tmp_path: Path) -> None:
    broken = Reply((Fail("no more today", retryable=False),), when=WANTED, always=True)
    replies = [answer(usage=FULL) for _ in range(8)]
    async with engine_harness(tmp_path, broken, *replies, settings=QUIET) as harness:
        conversation = await talked(harness, 6)
        assert summaries(harness) == 1
        assert harness.seen(Noticed)[-1].text == "Older messages were not summarized: no more today"
        assert conversation.record.message_count == 12


async def test_too_few_messages_are_not_summarized(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, SUMMARY, answer(), settings=QUIET) as harness:
        conversation = await talked(harness, 1)
        await conversation.context.compact()
        await conversation.wait_idle()
        assert notices(harness) == [compacting.TOO_FEW]
        assert summaries(harness) == 0


async def test_esc_ends_a_summary_at_once_and_its_answer_is_dropped(tmp_path: Path) -> None:
    hangs = Reply((Text("half a"), Hang()), when=WANTED)
    replies = [answer() for _ in range(3)] + [answer(usage=FULL), answer("next")]
    async with engine_harness(tmp_path, hangs, hangs, *replies, settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await conversation.context.compact()
        await until(lambda: isinstance(conversation.state, Compacting) and summaries(harness))
        assert isinstance(await conversation.say("now?"), Refused)
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert harness.provider.dropped == 1
        assert notices(harness) == []
        asking = asyncio.create_task(conversation.say("[go] into a full window"))
        await until(lambda: summaries(harness) == 2)
        assert isinstance(conversation.state, AwaitingLlm)
        assert conversation.state.phase == CompactingContext()
        conversation.cancel()
        assert isinstance(await conversation.wait_idle(), Idle)
        assert isinstance(await asking, Accepted)
        assert notices(harness)[-1].startswith("Stopped by you")
        assert conversation.record.summary == ""


@pytest.mark.parametrize("manual", [True, False])
async def test_a_restart_in_the_midst_of_a_summary_loses_nothing(tmp_path: Path, *, manual: bool) -> None:
    hangs = Reply((Hang(),), when=WANTED)
    replies = [answer() for _ in range(3)] + [answer(usage=FULL)]
    async with engine_harness(tmp_path, hangs, *replies, settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        if manual:
            await conversation.context.compact()
        else:
            await conversation.say("[go] unanswered")
        await until(lambda: summaries(harness))
        before = await harness.store.messages(conversation.id)
        with_the_same_file = await reopened(harness, tmp_path)
        assert with_the_same_file == before


async def reopened(harness: EngineHarness, home: Path) -> object:
    """State that another process finds after this one was killed: its messages, in an idle conversation."""
    copy = home / "copy"
    copy.mkdir()
    for name in ("phoenix.db", "phoenix.db-wal", "phoenix.db-journal"):
        if (home / name).exists():
            (copy / name).write_bytes((home / name).read_bytes())
    async with engine_harness(copy, answer("answered"), settings=QUIET) as other:
        [summary] = await other.engine.list()
        conversation = await other.engine.open(summary.id)
        assert isinstance(conversation.state, Idle)
        assert (conversation.record.summary, other.provider.requests) == ("", [])
        return await other.store.messages(conversation.id)


async def test_a_model_that_cannot_retell_leaves_it_to_rules(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, *[answer() for _ in range(5)], settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        info = ModelInfo("scripted", "main", WINDOW, summarizes=False)
        harness.provider.describe = lambda model: info  # type: ignore[method-assign]  # the one thing that differs
        await conversation.context.compact()
        await conversation.wait_idle()
        assert len(harness.provider.requests) == 4
        assert conversation.record.summary.startswith("Made by rules, without a model.")


async def test_one_long_run_of_tools_is_summarized_between_two_rounds_whenever_it_is_due(tmp_path: Path) -> None:
    big = [f'{{"command": "{n}' + "y" * 9_000 + '"}' for n in range(8)]
    calls = [Reply((ScriptedCall("bash", big[n]),), usage=NEARLY, when="[go]") for n in range(8)]
    async with engine_harness(tmp_path, SUMMARY, *calls, answer("done"), settings=QUIET) as harness:
        conversation = await talked(harness, 1)
        assert isinstance(conversation.state, Idle)
        first, second = (text for text in notices(harness) if text.startswith("Summarized"))
        counts = [text.partition(" ·")[0] for text in (first, second)]
        assert counts == ["Summarized 5 messages, kept 4", "Summarized 8 messages, kept 4"]
        begun, answered = harness.provider.requests[-1].messages[:2]
        assert begun.blocks[0] == TextBlock(f"{HEAD}{conversation.record.summary}")
        assert [type(block) for block in answered.blocks] == [ToolUseBlock], "a whole round follows the summary"
        stored = await harness.store.library.compactions(conversation.id)
        assert [(one.facts.cause, one.facts.kind, one.facts.messages) for one in reversed(stored)] == [
            (CompactionCause.FULL, CompactionKind.SUMMARY, 5),
            (CompactionCause.FULL, CompactionKind.SUMMARY, 8),
        ]


async def test_an_overflow_by_the_newest_result_shortens_it_and_goes_on(tmp_path: Path) -> None:
    full = Fail("prompt is too long", "invalid_request", retryable=False, context_overflow=True)
    big = Reply((ScriptedCall("bash", '{"command": "' + "y" * 9_000 + '"}'),), when="[go]")
    async with engine_harness(tmp_path, big, Reply((full,), when="[go]"), answer("short"), settings=QUIET) as harness:
        conversation = await talked(harness, 1)
        assert isinstance(conversation.state, Idle)
        assert notices(harness)[0].startswith("Shortened 1 tool result for the model")
        assert "\\n...\\n" in str(harness.provider.requests[-1].messages)


async def test_a_summary_that_leaves_too_much_shortens_what_stays(tmp_path: Path) -> None:
    full = Fail("prompt is too long", "invalid_request", retryable=False, context_overflow=True)
    big = Reply((ScriptedCall("bash", '{"command": "' + "y" * 9_000 + '"}'),), usage=Usage(WINDOW - 10, 9), when="[go]")
    for number, text in enumerate(("word " * 200, "few")):  # a summary of few words would be longer than they are
        replies = [answer(text) for _ in range(3)] + [big, Reply((full,), when="[go]"), answer("it fits")]
        async with engine_harness(tmp_path / str(number), SUMMARY, *replies, settings=QUIET) as harness:
            conversation = await talked(harness, 3)
            await talk(conversation, "a big one")
            assert isinstance(conversation.state, Idle)
            assert bool(conversation.record.summary) is (text != "few")
            assert len(conversation.record.omitted) == 1


async def test_a_message_that_was_queued_meanwhile_is_sent_behind_the_summary(tmp_path: Path) -> None:
    slow = Reply((Pause(0.05), Text("the plan is kept")), when=WANTED)
    async with engine_harness(tmp_path, slow, *[answer() for _ in range(5)], settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await conversation.context.compact()
        await until(lambda: isinstance(conversation.state, Compacting))
        assert isinstance(await conversation.queue.add("[go] later"), Accepted)
        await until(lambda: len(harness.provider.requests) == 6)
        sent = harness.provider.requests[-1].messages
        assert sent[0].blocks == (TextBlock(HEAD + conversation.record.summary),)
        assert sent[-1].blocks == (TextBlock("[go] later"),)
        await conversation.wait_idle()


async def test_closing_in_the_midst_of_a_summary_leaves_a_conversation_at_rest(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when=WANTED)
    async with engine_harness(tmp_path, hangs, *[answer() for _ in range(4)], settings=QUIET) as harness:
        conversation = await talked(harness, 4)
        await conversation.context.compact()
        await until(lambda: summaries(harness))
        await harness.engine.forget(conversation.id)
        again = await harness.engine.open(conversation.id)
        assert isinstance(again.state, Idle)
        assert again.record.summary == ""


SETTINGS = EngineSettings(compact_after_runs=True, compact_messages=6)


def answer_of_size(text: str = "word " * 200, tokens: int = 120) -> Reply:
    return Reply((Text(text),), usage=Usage(tokens - 20, 20), when="[go]")


def told(harness: EngineHarness) -> list[bool]:
    return [update.active for update in harness.seen(BackgroundSummary)]


@pytest.mark.parametrize(
    ("messages", "tokens", "due"),
    [(50, 20_000, False), (51, 20_000, True), (10, 150_000, False), (10, 150_001, True), (51, 0, True), (0, 0, False)],
)
def test_more_than_50_messages_or_more_than_three_quarters_of_the_window_are_due(
    messages: int, tokens: int, due: bool
) -> None:
    assert is_due(messages, tokens, 200_000, 50, 75) is due
    assert is_due(messages, tokens, 0, 0, 75) is False


async def test_the_rounds_of_tools_of_one_reply_are_no_messages_of_their_own(tmp_path: Path) -> None:
    calls = [Reply((ScriptedCall("bash", f'{{"command": "x{n}"}}'),), when="[go]") for n in range(60)]
    settings = EngineSettings(compact_after_runs=True)
    async with engine_harness(tmp_path, SUMMARY, *calls, answer_of_size(), settings=settings) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0")
        rows = await harness.store.messages(conversation.id)
        assert (len(rows), count_said(rows)) == (122, 2)
        await until(lambda: not conversation.context.summarizing)
        assert (summaries(harness), conversation.record.summary) == (0, "")


async def test_all_but_the_last_four_messages_are_summarized_while_the_conversation_rests(tmp_path: Path) -> None:
    replies = [answer_of_size() for _ in range(4)] + [answer_of_size("after")]
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
    async with engine_harness(tmp_path, slow, *[answer_of_size() for _ in range(6)], settings=SETTINGS) as harness:
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
    async with engine_harness(tmp_path, hangs, *[answer_of_size() for _ in range(6)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        await until(lambda: conversation.context.summarizing and told(harness) == [True])
        conversation.cancel()
        await until(lambda: not conversation.context.summarizing)
        assert (told(harness), conversation.record.summary) == ([True, False], "")
        assert await harness.store.library.compactions(conversation.id) == []


async def test_a_summary_on_request_ends_the_one_in_the_background(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when=WANTED)
    async with engine_harness(
        tmp_path, hangs, SUMMARY, *[answer_of_size() for _ in range(4)], settings=SETTINGS
    ) as harness:
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
    async with engine_harness(
        tmp_path, broken, SUMMARY, *[answer_of_size() for _ in range(6)], settings=SETTINGS
    ) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        await until(lambda: told(harness) == [True, False])
        assert conversation.record.summary == ""
        await talk(conversation, "4")
        await until(lambda: conversation.record.summary)


async def test_it_is_off_by_itself_below_the_limits_and_where_the_user_said_never(tmp_path: Path) -> None:
    few = EngineSettings(compact_after_runs=True, compact_messages=0)
    for number, settings in enumerate((EngineSettings(compact_messages=6), few)):
        async with engine_harness(
            tmp_path / str(number), *[answer_of_size() for _ in range(5)], settings=settings
        ) as harness:
            conversation = await harness.conversation()
            await talk(conversation, "0", "1", "2", "3", "4")
            assert (summaries(harness), conversation.context.summarizing) == (0, False)
    async with engine_harness(tmp_path / "never", *[answer_of_size() for _ in range(5)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await conversation.context.set_threshold(200)
        await talk(conversation, "0", "1", "2", "3", "4")
        assert (summaries(harness), conversation.context.summarizing) == (0, False)


async def test_a_summary_after_the_run_and_the_next_message_do_not_summarize_twice(tmp_path: Path) -> None:
    full = answer_of_size(tokens=WINDOW * 4 // 5)
    async with engine_harness(tmp_path, SUMMARY, *[full for _ in range(6)], settings=SETTINGS) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2")
        await until(lambda: conversation.record.summary)
        await talk(conversation, "3")
        assert summaries(harness) == 1


async def test_an_attempt_is_remembered_by_the_next_process(tmp_path: Path) -> None:
    full = answer_of_size(tokens=WINDOW * 4 // 5)
    async with engine_harness(tmp_path, SUMMARY, *[full for _ in range(4)]) as harness:
        conversation = await harness.conversation()
        await talk(conversation, "0", "1", "2", "3")
        assert summaries(harness) == 1
    async with engine_harness(tmp_path, SUMMARY, full) as harness:
        again = await harness.engine.open(conversation.id)
        assert again.record.compacted_at == conversation.record.compacted_at == 7
        await talk(again, "4")
        assert summaries(harness) == 0, "two messages are too few for another"
