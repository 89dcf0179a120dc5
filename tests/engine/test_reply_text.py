"""The text of replies as it is stored, shown and sent again (SPEC CLAW-12, CLAW-13)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from engine.executor.engine_settings import EngineSettings
from engine.machine.messages import Block, Role, StopReason, TextBlock, ThinkingBlock, ToolUseBlock, text_in
from engine.machine.states import Errored, Idle
from engine.records import StoredMessage
from engine.updates import RunEnded, TextArrived
from tests.support.engine import EngineHarness, engine_harness
from tests.support.scripted_provider import Reply, Script, ScriptedCall, ScriptedProvider, Text, Thought

GARBLED = Reply((Text("<think>plan</think>Answer\n\nAnswer"),))
EMPTY = Reply((Text('<tool_call>{"name": "bash"}</tool_call>'),))


async def talk(harness: EngineHarness, *said: str) -> list[StoredMessage]:
    conversation = await harness.conversation()
    for text in said:
        await conversation.say(text)
        await conversation.wait_idle()
    return await harness.store.messages(conversation.id)


def replies(rows: list[StoredMessage]) -> list[tuple[Block, ...]]:
    return [row.blocks for row in rows if row.role is Role.ASSISTANT]


def sent(harness: EngineHarness) -> list[tuple[str, str]]:
    return [(message.role.value, text_in(message.blocks, "|")) for message in harness.provider.requests[-1].messages]


async def test_remains_are_streamed_but_neither_stored_nor_sent_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine_harness(tmp_path, GARBLED, Reply((Text("So"),))) as harness:
        with caplog.at_level(logging.INFO):
            rows = await talk(harness, "hi", "again")
        assert "".join(update.text for update in harness.seen(TextArrived)).startswith("<think>plan</think>")
        assert replies(rows) == [(TextBlock("Answer"),), (TextBlock("So"),)]
        assert sent(harness) == [("user", "hi"), ("assistant", "Answer"), ("user", "again")]
    assert f"reply {rows[1].id}: removed characters of {{'thoughts': 19, 'repeated blocks': 8}}" in caplog.text
    assert "plan" not in caplog.text


async def test_the_setting_keeps_replies_as_they_came(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, GARBLED, settings=EngineSettings(sanitize_replies=False)) as harness:
        assert replies(await talk(harness, "hi")) == [(TextBlock("<think>plan</think>Answer\n\nAnswer"),)]


async def test_thinking_and_calls_stay_and_an_empty_text_goes(tmp_path: Path) -> None:
    thought = "<think>\n\n\nplan</think>"
    call = Reply((Thought(thought), Text("<final></final>"), ScriptedCall("bash", '{"command": "<think>"}', "t1")))
    async with engine_harness(tmp_path, call, Reply((Text("done"),))) as harness:
        [first, last] = replies(await talk(harness, "hi"))
        assert first == (ThinkingBlock(thought, "scripted"), ToolUseBlock("t1", "bash", '{"command": "<think>"}'))
        assert last == (TextBlock("done"),)


async def test_a_fence_that_spans_two_parts_of_a_reply_protects_its_code(tmp_path: Path) -> None:
    parts = (
        Reply((Text("Look \n```\n<think>a"),), StopReason.MAX_TOKENS),
        Reply((Text("</think>\n\nsame\n\nsame\n``` \nso <final>x</final>"),)),
    )
    async with engine_harness(tmp_path, *parts) as harness:
        [reply] = replies(await talk(harness, "hi"))
        assert reply == (TextBlock("Look \n```\n<think>a</think>\n\nsame\n\nsame\n``` \nso x"),)


async def test_the_parts_of_a_reply_are_joined_as_they_were_written(tmp_path: Path) -> None:
    parts = (Reply((Text("one <think>a"),), StopReason.MAX_TOKENS), Reply((Text("b</think> two"),)))
    async with engine_harness(tmp_path, *parts) as harness:
        assert replies(await talk(harness, "hi")) == [(TextBlock("one  two"),)]
        assert sent(harness)[1] == ("assistant", "one <think>a")


async def test_a_reply_that_is_nothing_but_remains_is_asked_for_again_like_an_empty_one(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, EMPTY, Reply((Text("Here"),))) as harness:
        assert replies(await talk(harness, "hi")) == [(TextBlock("Here"),)]
        assert len(harness.provider.requests) == 2


async def test_nothing_but_remains_for_ever_ends_in_an_error(tmp_path: Path) -> None:
    provider = ScriptedProvider({"main": Script((EMPTY,) * 9)})
    async with engine_harness(tmp_path, provider=provider) as harness:
        conversation = await harness.conversation()
        await conversation.say("hi")
        state = await conversation.wait_idle()
        assert isinstance(state, Errored)
        assert state.kind == "empty"
        assert len(provider.requests) == 4


async def test_after_a_tool_it_ends_the_run_well(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((ScriptedCall("bash", '{"command": "ls"}'),)), EMPTY) as harness:
        await talk(harness, "hi")
        assert [ended.status for ended in harness.seen(RunEnded)] == ["success"]


async def test_a_reply_of_a_megabyte_is_cleaned_too(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("<think>" + "x" * 1_000_000 + "</think>So"),))) as harness:
        assert replies(await talk(harness, "hi")) == [(TextBlock("So"),)]


async def test_no_reply_ends_the_run_well_and_is_kept_and_never_sent(tmp_path: Path) -> None:
    async with engine_harness(tmp_path, Reply((Text("NO_REPLY"),)), Reply((Text("So"),))) as harness:
        conversation = await harness.conversation()
        await conversation.say("hi")
        assert isinstance(await conversation.wait_idle(), Idle)
        [_, row] = await harness.store.messages(conversation.id)
        assert (row.silent, row.blocks) == (True, (TextBlock("NO_REPLY"),))
        assert [ended.status for ended in harness.seen(RunEnded)] == ["success"]
        await conversation.say("again")
        await conversation.wait_idle()
        assert sent(harness) == [("user", "hi|again")]
        rows = await harness.store.messages(conversation.id)
        assert [row.turn_number for row in rows] == [0, 0, 1, 1], "the silent reply ends its turn"


async def test_a_call_beside_the_token_is_made_and_shown(tmp_path: Path) -> None:
    script = (Reply((Text("NO_REPLY"), ScriptedCall("bash", '{"command": "ls"}'))), Reply((Text("done"),)))
    async with engine_harness(tmp_path, *script) as harness:
        rows = await talk(harness, "hi")
        assert [row.silent for row in rows] == [False] * 4
        assert len(harness.tool.calls) == 1
