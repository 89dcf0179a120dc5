"""Servers that answer in one piece, or with an error under status 200, and unknown kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.machine.messages import Role, StopReason, TextBlock, ToolUseBlock, Usage, text_in
from engine.ports import ModelMessage, ModelReply, ModelRequest, Provider, ProviderError
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from tests.support.loopback import Answer, Loopback, Talk, serve
from tests.support.loopback_anthropic import Event, recording, start, stop, text

HELLO = ModelRequest("m", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5-5",
    "content": [
        {"type": "text", "text": "Hello there"},
        {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
OPENAI = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Hello there",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5},
}


def provider(kind: str, loopback: Loopback) -> Provider:
    if kind == "openai":
        return OpenAiCompatibleProvider(OpenAiCompatibleSettings("gateway", f"{loopback.url}/v1", api_key="sk-test"))
    transport: Any = "sdk" if kind == "claude, sdk" else "http"
    return AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url, transport=transport))


async def ask(kind: str, answer: Answer) -> tuple[ModelReply, int]:
    """The reply, and how many requests it took."""
    async with serve(answer) as loopback:
        asked = provider(kind, loopback)
        try:
            items = [item async for item in asked.stream(HELLO)]
        finally:
            await asked.close()
        assert isinstance(items[-1], ModelReply)
        return items[-1], len(loopback.requests)


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
@pytest.mark.parametrize("named", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("pieces", [1, 40])
async def test_a_reply_in_one_piece_is_read_as_one(kind: str, named: str, pieces: int) -> None:
    document = b"\n " + json.dumps(OPENAI if kind == "openai" else CLAUDE).encode()

    async def answer(talk: Talk) -> None:
        await talk.begin(named)
        size = len(document) // pieces + 1
        await talk.send(*(document[at : at + size] for at in range(0, len(document), size)))
        await talk.end()

    reply, requests = await ask(kind, answer)
    assert (text_in(reply.blocks), reply.stop, requests) == ("Hello there", StopReason.TOOL_USE, 1)
    [call] = [block for block in reply.blocks if isinstance(block, ToolUseBlock)]
    assert (call.name, json.loads(call.input_json)) == ("bash", {"command": "ls"})
    assert reply.usage == Usage(10, 5)


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
@pytest.mark.parametrize(
    "document",
    [
        {"error": {"message": "No such deployment: gpt-9", "code": 404}},
        {"error": "No such deployment: gpt-9"},
        {"message": "No such deployment: gpt-9"},
        {"detail": "No such deployment: gpt-9"},
        {"type": "error", "error": {"type": "not_found_error", "message": "No such deployment: gpt-9"}},
    ],
)
async def test_an_error_in_the_place_of_a_reply_is_told_in_its_own_words(kind: str, document: Any) -> None:
    async def answer(talk: Talk) -> None:
        await talk.plain(200, json.dumps(document).encode())

    with pytest.raises(ProviderError, match="No such deployment: gpt-9") as caught:
        await ask(kind, answer)
    assert not caught.value.retryable


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
@pytest.mark.parametrize("body", [b'{"type": "message", "content": [{"ty', b"{}}", b'{"a": \xff\xfe', b"[1, 2"])
async def test_a_damaged_body_counts_as_a_stream_that_was_cut(kind: str, body: bytes) -> None:
    async def answer(talk: Talk) -> None:
        await talk.plain(200, body)

    with pytest.raises(ProviderError, match="was lost in the middle of the reply") as caught:
        await ask(kind, answer)
    assert caught.value.retryable


@pytest.mark.parametrize("kind", ["claude", "claude, sdk", "openai"])
async def test_a_web_page_in_the_place_of_a_reply_is_named(kind: str) -> None:
    async def answer(talk: Talk) -> None:
        await talk.begin("text/html; charset=utf-8")
        await talk.send(b"<!DOCTYPE html><title>Log in</title>")
        await talk.end()

    with pytest.raises(ProviderError, match="answered with a web page"):
        await ask(kind, answer)


@pytest.mark.parametrize("kind", ["claude", "claude, sdk"])
async def test_kinds_that_nobody_knows_yet_are_passed_by(kind: str) -> None:
    new: list[Event] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "hologram", "beam": [1, 2]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "hologram_delta", "beam": {"x": 1}}},
        {"type": "content_block_stop", "index": 0},
        {"type": "weather_report", "sky": "clear"},
    ]
    events = recording(start(), new, text(1, "Hello there"), stop())

    async def answer(talk: Talk) -> None:
        await talk.begin()
        await talk.send(*events)
        await talk.end()

    reply, requests = await ask(kind, answer)
    assert (text_in(reply.blocks), requests) == ("Hello there", 1)
