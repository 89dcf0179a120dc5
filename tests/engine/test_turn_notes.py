"""Each turn is summed up for the list of turns: in the background, counted, and never in anybody's way."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.background.after_run import LONGEST_NOTE, cut_note, describe_turn
from engine.conversation import Conversation
from engine.engine import ConversationOptions
from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import TextBlock
from engine.records import PermissionMode
from engine.records.runs import Totals, TurnDigest
from tests.support.engine import EngineHarness, engine_harness, run_turn, until
from tests.support.scripted_provider import Fail, Hang, Reply, Script, ScriptedCall, ScriptedProvider, Text
from tests.support.waiting import PATIENCE

ON = EngineSettings(turn_summaries=True)
WORK = Reply((Text("I look."), ScriptedCall("bash", '{"command": "make test"}', "t1")))
DONE = Reply((Text("The second try reused a closed socket; it opens a new one now."),))
ASKED = "why does the retry hang?"
SUMMING = "Assistant:"
"""Text that only requests for a summary contain."""
SUMMARY = "Asked why the retry hangs.\nIt reused a closed socket; fixed."
SUMS_UP = Reply((Text(SUMMARY),), when=SUMMING)
KEPT = "Asked why the retry hangs. It reused a closed socket; fixed."


async def worked(harness: EngineHarness) -> Conversation:
    """A conversation after a turn with a tool."""
    return await harness.run(ASKED)


async def summaries(harness: EngineHarness, conversation: Conversation) -> list[str]:
    return [turn.summary for turn in await harness.store.library.turns(conversation.id)]


async def test_a_turn_that_used_tools_is_summed_up_and_its_cost_is_counted(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, WORK, DONE, SUMS_UP, settings=ON) as harness:
        conversation = await worked(harness)
        await until(lambda: conversation.record.totals == Totals(300, 60, 0, 0, 0.03))
        assert await summaries(harness, conversation) == [KEPT]
        stored = await harness.store.conversation(conversation.id)
        assert stored is not None
        assert stored.totals == conversation.record.totals
        asked = harness.provider.requests[2]
        assert asked.tools == ()
        assert asked.max_tokens == 1_024
        (block,) = asked.messages[0].blocks
        assert isinstance(block, TextBlock)
        assert block.text == (
            f"User: {ASKED}\n\n[Tools: bash 1]\n\n"
            "Assistant: The second try reused a closed socket; it opens a new one now."
        )


async def test_no_model_reads_a_summary_in_its_context(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, WORK, DONE, SUMS_UP, Reply((Text("Yes."),)), settings=ON) as harness:
        conversation = await worked(harness)
        await until(lambda: conversation.record.totals.input_tokens == 300)
        await run_turn(conversation, "sure?")
        assert "fixed." not in str(harness.provider.requests[-1].messages)
        assert await summaries(harness, conversation) == [KEPT, ""]  # a short exchange is its own summary


async def test_the_cheap_model_is_asked_where_there_is_one(tmp_path: Path) -> None:
    scripts = {"main": Script((WORK, DONE)), "small": Script((SUMS_UP,))}
    settings = replace(ON, cheap_model="scripted/small")
    async with engine_harness(tmp_path, settings=settings, provider=ScriptedProvider(scripts)) as harness:
        conversation = await worked(harness)
        await until(lambda: conversation.record.totals.input_tokens == 300)
        assert [request.model for request in harness.provider.requests] == ["main", "main", "small"]


async def test_the_next_turn_does_not_wait_and_closing_ends_the_request(tmp_path: Path) -> None:
    hangs = Reply((Hang(),), when=SUMMING)
    async with engine_harness(tmp_path, WORK, DONE, hangs, Reply((Text("Yes."),)), settings=ON) as harness:
        conversation = await worked(harness)
        await until(lambda: len(harness.provider.requests) == 3)
        await run_turn(conversation, "sure?")
        assert len(harness.provider.requests) == 4
        async with asyncio.timeout(PATIENCE):
            await harness.engine.forget(conversation.id)
        assert harness.provider.dropped == 1


async def test_a_failure_is_only_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "engine.background.after_run")
    async with engine_harness(
        tmp_path, WORK, DONE, Reply((Fail("out of order"),), when=SUMMING), settings=ON
    ) as harness:
        conversation = await worked(harness)
        await until(lambda: "no summary of a turn" in caplog.text)
        assert await summaries(harness, conversation) == [""]
        assert not any(getattr(update, "error", "") for update in harness.updates)


@pytest.mark.parametrize("why", ["off", "local", "short"])
async def test_nobody_is_asked_where_it_is_off_or_local_or_short(tmp_path: Path, why: str) -> None:
    replies = (Reply((Text("Yes."),)),) if why == "short" else (WORK, DONE)
    async with engine_harness(tmp_path, *replies, settings=None if why == "off" else ON) as harness:
        describe = harness.provider.describe
        local = why == "local"
        harness.provider.describe = lambda model: replace(describe(model), local=local)  # type: ignore[method-assign] # a model of this machine
        conversation = await worked(harness)
        await harness.engine.forget(conversation.id)
        assert len(harness.provider.requests) == len(replies)


async def test_a_run_that_was_stopped_or_failed_is_not_summed_up(tmp_path: Path) -> None:
    fails = Reply((Fail("no", retryable=False),))
    async with engine_harness(tmp_path, WORK, fails, settings=ON) as harness:
        conversation = await worked(harness)
        await harness.engine.forget(conversation.id)
        assert len(harness.provider.requests) == 2


async def test_a_sub_agent_makes_none(tmp_path: Path) -> None:
    spawn = Reply((ScriptedCall("spawn_agents", '{"tasks": [{"task": "TASK one"}]}', "s1"),), when=ASKED)
    child = Reply((ScriptedCall("submit_result", '{"result": "42"}', "r1"),), when="TASK one")
    replies = (Reply((Text("sum"),), when=SUMMING, always=True), child, spawn, DONE)
    async with engine_harness(tmp_path, *replies, settings=ON) as harness:
        options = ConversationOptions(harness.cwd, "scripted/main", permission_mode=PermissionMode.AUTO)
        conversation = await harness.engine.create(options)
        await run_turn(conversation, ASKED)
        await until(lambda: sum(not request.tools for request in harness.provider.requests) == 1)
        await harness.engine.forget(conversation.id)
        assert sum(not request.tools for request in harness.provider.requests) == 1


def test_an_exchange_of_few_words_without_tools_needs_no_summary() -> None:
    long = " ".join(["word"] * 40)
    assert describe_turn(TurnDigest(1, "hello", "Good evening.")) == ""
    assert describe_turn(TurnDigest(1, "", long)) == ""
    assert describe_turn(TurnDigest(1, long, "")) == ""
    assert describe_turn(TurnDigest(1, "hello", long)) == f"User: hello\n\nAssistant: {long}"
    turn = TurnDigest(1, "fix it", "Done.", (("patch", 2), ("bash", 1)), ("a.py", "b.py"))
    assert describe_turn(turn) == (
        "User: fix it\n\n[Tools: patch 2, bash 1]\n\n[Changed: a.py, b.py]\n\nAssistant: Done."
    )


def test_a_long_answer_is_cut_between_two_words() -> None:
    assert cut_note(' "Two\n lines." ') == "Two lines."
    cut = cut_note("word " * 200)
    assert len(cut) <= LONGEST_NOTE
    assert cut.endswith("word…")
    assert cut_note("x" * 900) == "x" * (LONGEST_NOTE - 1) + "…"
