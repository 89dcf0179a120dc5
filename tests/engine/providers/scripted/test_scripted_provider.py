"""Contract of the scripted provider for the tests and pictures that use it."""

from __future__ import annotations

import asyncio

import pytest

from engine.machine.messages import Role, StopReason, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from engine.ports import (
    ModelMessage,
    ModelReply,
    ModelRequest,
    Provider,
    ProviderError,
    StreamItem,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from tests.support.scripted_provider import (
    Cut,
    Fail,
    Hang,
    Pause,
    Reply,
    Script,
    ScriptedCall,
    ScriptedProvider,
    Text,
    Thought,
    says,
)
from tools.contract import ToolClass, ToolSpec

TOOL = ToolSpec("bash", "Run.", {"type": "object"}, ToolClass.RUN)


def request(text: str = "Hi", *, tools: tuple[ToolSpec, ...] = (TOOL,)) -> ModelRequest:
    return ModelRequest("main", ("system",), (ModelMessage(Role.USER, (TextBlock(text),)),), tools)


async def play(provider: Provider, asked: ModelRequest) -> list[StreamItem]:
    return [item async for item in provider.stream(asked)]


async def last(provider: Provider, asked: ModelRequest) -> ModelReply:
    reply = (await play(provider, asked))[-1]
    assert isinstance(reply, ModelReply)
    return reply


async def test_a_reply_is_played_in_pieces_and_ends_whole() -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    reply = Reply((
        Thought("hm"),
        Text("abcde", piece=2, delay=0.5),
        Pause(3.0),
        ScriptedCall("bash", '{"a":1}', piece=4),
    ))
    provider = ScriptedProvider({"main": Script((reply,))}, wait)
    assert await play(provider, request()) == [
        ThinkingDelta("hm"),
        TextDelta("ab"),
        TextDelta("cd"),
        TextDelta("e"),
        ToolCallDelta("bash", ""),
        ToolCallDelta("", '{"a"'),
        ToolCallDelta("", ":1}"),
        ModelReply(
            (ThinkingBlock("hm", "scripted"), TextBlock("abcde"), ToolUseBlock("scripted_1", "bash", '{"a":1}')),
            StopReason.TOOL_USE,
            Usage(100, 20),
            "main",
        ),
    ]
    assert waited == [0.0, 0.5, 0.5, 0.5, 3.0, 0.0, 0.0]


async def test_replies_come_in_order_and_asides_use_none_up() -> None:
    provider = ScriptedProvider({"main": says("one", "two")})
    asked = [request(), request(tools=()), request(), request()]
    replies = [await last(provider, each) for each in asked]
    assert [reply.blocks for reply in replies] == [
        (TextBlock("one"),),
        (TextBlock("aside"),),
        (TextBlock("two"),),
        (TextBlock("SCRIPT-END"),),
    ]
    assert provider.requests == asked


async def test_a_reply_may_wait_for_its_request() -> None:
    replies = (Reply((Text("child"),), when="child task"), Reply((Text("parent"),), always=True))
    provider = ScriptedProvider({"main": Script(replies)})
    texts = [await last(provider, request(text)) for text in ("a", "the child task", "the child task")]
    assert [reply.blocks for reply in texts] == [(TextBlock("parent"),), (TextBlock("child"),), (TextBlock("parent"),)]


@pytest.mark.parametrize(
    ("part", "kind", "retryable"),
    [
        (Cut(), "network", True),
        (Fail("no", kind="auth", retryable=False), "auth", False),
        (Fail("busy"), "server", True),
    ],
)
async def test_a_reply_may_fail_after_some_text(part: Cut | Fail, kind: str, retryable: bool) -> None:
    provider = ScriptedProvider({"main": Script((Reply((Text("so"), part)),))})
    stream = provider.stream(request())
    assert await anext(stream) == TextDelta("so")
    with pytest.raises(ProviderError) as caught:
        await anext(stream)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)


async def test_a_hanging_reply_ends_by_cancellation_and_is_counted() -> None:
    reached = asyncio.Event()

    async def wait(seconds: float) -> None:
        reached.set()

    provider = ScriptedProvider({"main": Script((Reply((Pause(1), Hang())),))}, wait)
    task = asyncio.create_task(play(provider, request()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.dropped == 1


async def test_closing_a_stream_early_is_counted() -> None:
    provider = ScriptedProvider({"main": says("one")})
    stream = provider.stream(request())
    await anext(stream)
    await stream.aclose()
    assert provider.dropped == 1


async def test_an_unknown_script_is_named() -> None:
    provider = ScriptedProvider({})
    with pytest.raises(ProviderError, match="No script is named main"):
        await play(provider, request())
    assert await provider.models() == []
