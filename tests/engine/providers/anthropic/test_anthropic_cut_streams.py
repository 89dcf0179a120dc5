"""A recorded stream, cut at every byte: never a hang, never half a tool call (FAULTS 36, 37, 40)."""

from __future__ import annotations

import asyncio

import pytest

from engine.machine.messages import Role, StopReason, TextBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError, StreamItem
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.anthropic.from_wire import AnthropicReplyBuilder
from engine.providers.events import EventParser
from engine.providers.failures import Service
from tests.support.loopback import Talk, serve
from tests.support.loopback_anthropic import recording, start, stop, text, tool
from tests.support.waiting import PATIENCE

REQUEST = ModelRequest("claude-sonnet-5-5", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
SERVICE = Service("http://x", "X")
RECORDED = b"".join(
    recording(start(), text(0, "Ω ok"), tool(1, "bash", '{"command"', ': "rm -r x"}'), stop("tool_use"))
)
BLOCKS = (TextBlock("Ω ok"), ToolUseBlock("toolu_1", "bash", '{"command": "rm -r x"}'))
WHOLE = len(RECORDED) - len(b"\n\n")
"""Offset from which the last event is complete, even if its blank line is not."""


async def outcome(provider: AnthropicProvider) -> str:
    """`reply` for a whole one, else the kind of the error; a tool call that is not whole fails the test."""
    items: list[StreamItem] = []
    try:
        async with asyncio.timeout(PATIENCE):
            async for item in provider.stream(REQUEST):
                items.append(item)
    except ProviderError as error:
        assert error.retryable
        assert not any(isinstance(item, ModelReply) for item in items)
        return error.kind
    reply = items[-1]
    assert isinstance(reply, ModelReply)
    assert (reply.blocks, reply.stop) == (BLOCKS, StopReason.TOOL_USE)
    return "reply"


def test_every_split_of_the_bytes_gives_the_same_reply() -> None:
    replies: set[ModelReply] = set()
    for at in range(len(RECORDED)):
        parser, builder = EventParser(), AnthropicReplyBuilder(SERVICE, "m", set())
        for payload in [*parser.feed(RECORDED[:at]), *parser.feed(RECORDED[at:])]:
            builder.feed(payload)
        assert builder.done
        replies.add(builder.reply())
    assert [reply.blocks for reply in replies] == [BLOCKS]


@pytest.mark.parametrize(
    ("ending", "transport", "stride"),
    [("end", "http", 1), ("reset", "http", 7), ("end", "sdk", 97), ("reset", "sdk", 97)],
)
async def test_a_stream_cut_at_any_byte_is_a_network_error_or_a_whole_reply(
    ending: str, transport: str, stride: int
) -> None:
    offsets = [*range(0, WHOLE, stride), *range(WHOLE, len(RECORDED) + 1)]
    left = iter(offsets)

    async def answer(talk: Talk) -> None:
        await talk.begin()
        if piece := RECORDED[: next(left)]:
            await talk.send(piece)
        await (talk.end() if ending == "end" else hang_up(talk))

    async with serve(answer) as loopback:
        provider = AnthropicProvider(
            AnthropicSettings(api_key="k", base_url=loopback.url, transport="sdk" if transport == "sdk" else "http")
        )
        outcomes = [await outcome(provider) for _ in offsets]
        await provider.close()
    # Without the last blank line, or with the connection gone, a whole reply may or may not count as such.
    sure = [kind for offset, kind in zip(offsets, outcomes, strict=True) if offset < WHOLE]
    assert set(sure) == {"network"}
    assert set(outcomes[len(sure) :]) <= {"reply", "network"}
    assert outcomes[-1] == "reply"


async def hang_up(talk: Talk) -> None:
    """Close without the end of the chunked body, after what was sent has left."""
    talk.keep = False
    talk.writer.write_eof()


async def test_a_stall_at_sampled_bytes_ends_at_the_idle_limit() -> None:
    offsets = range(0, WHOLE, 97)
    left = iter(offsets)

    async def answer(talk: Talk) -> None:
        await talk.begin()
        if piece := RECORDED[: next(left)]:
            await talk.send(piece)
        await talk.stall()

    async with serve(answer) as loopback:
        provider = AnthropicProvider(AnthropicSettings(api_key="k", base_url=loopback.url, idle_timeout=0.05))
        assert {await outcome(provider) for _ in offsets} == {"network"}
        await provider.close()
        await loopback.wait_closed()
