"""Runs of many times the window: always a valid request, never one that does not fit, and early facts stay known."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.conversation import Conversation
from engine.executor.engine_settings import EngineSettings
from engine.executor.requests import Accepted
from engine.machine.messages import TextBlock
from engine.machine.states import Idle
from engine.machine.views import CompactionKind
from tests.support.engine import EngineHarness, Providers, engine_harness
from tests.support.long_run import FACTS, LongRunProvider, LongTool

SETTINGS = EngineSettings(max_iterations=1_000, auto_title=False)
STEPS = 500


async def last_answer(harness: EngineHarness, conversation: Conversation) -> str:
    (block,) = (await harness.store.messages(conversation.id))[-1].blocks
    assert isinstance(block, TextBlock)
    return block.text


async def ask(harness: EngineHarness, conversation: Conversation, text: str) -> str:
    assert isinstance(await conversation.say(text), Accepted)
    assert isinstance(await conversation.wait_idle(), Idle)
    return await last_answer(harness, conversation)


@pytest.mark.parametrize("window", [32_000, 200_000])
async def test_500_tool_calls_end_in_any_window_without_one_request_that_is_refused(
    tmp_path: Path, window: int
) -> None:
    provider, tool = LongRunProvider(window, STEPS, checked_every=window // 32_000), LongTool()
    async with engine_harness(tmp_path, tool=tool, settings=SETTINGS, providers=Providers(provider)) as harness:
        conversation = await harness.conversation()
        assert await ask(harness, conversation, "Do all the steps.") == "done"
        assert (len(tool.calls), provider.overflows) == (STEPS, 0)
        made = await harness.store.library.compactions(conversation.id)
        kinds = [one.facts.kind for one in made]
        assert kinds.count(CompactionKind.SUMMARY) == provider.summaries
        assert kinds.count(CompactionKind.NONE) == 0
        assert len(provider.misses) == len(kinds), "only a compaction or a pruning costs the prompt cache"
        assert provider.cache_share > 0.9
        for one in made:
            assert one.facts.tokens_after < one.facts.tokens_before * 0.9
        if window == 32_000:
            assert provider.summaries > 20
            for number in range(1, FACTS + 1):
                answer = await ask(harness, conversation, f"What is FACT-{number}?")
                assert answer == f"FACT-{number} = value{number * 7919}", "kept through every summary"
