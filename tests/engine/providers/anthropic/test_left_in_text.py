"""Calls and reasoning in the text of servers that speak Claude's API, as llama.cpp does with Qwen."""

from __future__ import annotations

import asyncio

import pytest

from engine.machine.messages import Role, StopReason, TextBlock, ThinkingBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from tests.support.loopback import Answer, serve
from tests.support.loopback_anthropic import plays, recording, start, stop, text, tool
from tools.contract import ToolClass, ToolSpec

BASH = ToolSpec("bash", "Run a command.", {"type": "object", "properties": {"command": {}}}, ToolClass.RUN)
LS = '{"name": "bash", "arguments": {"command": "ls"}}'


def says(*words: str) -> Answer:
    return plays(recording(start(), text(0, *words), stop()))


async def replies(*answers: Answer, tools: tuple[ToolSpec, ...] = (BASH,), model: str = "qwen") -> list[ModelReply]:
    """Reply read from each answer."""
    request = ModelRequest(model, (), (ModelMessage(Role.USER, (TextBlock("Go"),)),), tools)
    async with serve(*answers) as loopback:
        asked = AnthropicProvider(AnthropicSettings(api_key="k", base_url=loopback.url))
        try:
            found = [[item async for item in asked.stream(request)][-1] for _ in answers]
        finally:
            await asked.close()
    return [each for each in found if isinstance(each, ModelReply)]


@pytest.mark.parametrize("written", [LS, f"{{{LS}}}", f"<tools>\n{LS}\n</tools>", f"```json\n{LS}\n```"])
async def test_a_call_in_the_text_is_a_call(written: str) -> None:
    (reply,) = await replies(says("I look.\n", written[:9], written[9:]))
    assert reply.blocks[0] == TextBlock("I look.")
    assert isinstance(reply.blocks[1], ToolUseBlock)
    assert (reply.blocks[1].name, reply.blocks[1].input_json) == ("bash", '{"command":"ls"}')
    assert reply.stop is StopReason.TOOL_USE


async def test_reasoning_in_tags_is_reasoning() -> None:
    (reply,) = await replies(says("<think>I look.</think>", "Calm."))
    assert (reply.blocks, reply.stop) == ((ThinkingBlock("I look.", ""), TextBlock("Calm.")), StopReason.END_TURN)


@pytest.mark.parametrize(
    "words", ["Hello.", f"Write {LS} so.", '{"name": "hammer", "arguments": {}}', f"{LS}\nis one."]
)
async def test_everything_else_stays_text(words: str) -> None:
    (reply,) = await replies(says(words))
    assert (reply.blocks, reply.stop) == ((TextBlock(words),), StopReason.END_TURN)


async def test_without_tools_and_from_a_server_that_reads_calls_itself_it_is_text() -> None:
    (reply,) = await replies(says(LS), tools=())
    assert reply.blocks == (TextBlock(LS),)
    calls = plays(recording(start(), tool(0, "bash", '{"command": "ls"}'), stop("tool_use")))
    _, reply = await replies(calls, says(LS))
    assert reply.blocks == (TextBlock(LS),)


@pytest.mark.parametrize("model", ["claude-opus-4-8", "bedrock/anthropic.claude-sonnet-4-5", "gpt-5", "openai/o3"])
async def test_a_model_that_makes_its_calls_itself_may_quote_one(model: str) -> None:
    (reply,) = await replies(says(LS), model=model)
    assert reply.blocks == (TextBlock(LS),)


async def test_the_loop_goes_on_while_a_long_text_is_looked_through() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    before = turns
    (reply,) = await replies(says("a\n" * 120_000 + LS))
    counting.cancel()
    assert isinstance(reply.blocks[-1], ToolUseBlock)
    assert turns - before > 100  # some 30 where the loop reads it itself
