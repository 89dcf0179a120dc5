"""Whole streams as servers vary them: framing, endings, place of usage, form of calls; and broken bytes."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.machine.messages import StopReason, ToolUseBlock, text_in
from engine.ports import ModelReply, ProviderError
from engine.providers.anthropic import from_wire as claude
from engine.providers.events import payloads_of
from engine.providers.failures import Service
from engine.providers.openai_compatible import from_wire as openai
from tests.support.loopback_anthropic import start, stop, text, thinking, tool
from tests.support.waiting import PATIENCE

SERVICE = Service("https://gateway.example", "KEY")
Event = dict[str, Any]


def lines(end: str, before: str = "", space: str = " ") -> Callable[[Event], str]:
    return lambda event: f"{before}data:{space}{json.dumps(event)}{end}{end}"


FRAMINGS: dict[str, Callable[[Event], str]] = {
    "plain": lines("\n"),
    "no space": lines("\n", space=""),
    "CRLF": lines("\r\n"),
    "CR": lines("\r"),
    "comments": lines("\n", ": OPENROUTER PROCESSING\n\n"),
    "named": lambda event: f"event: {event.get('type', 'message')}\nid: 7\nretry: 3000\ndata: {json.dumps(event)}\n\n",
    "spread": lambda event: "".join(f"data: {line}\n" for line in json.dumps(event, indent=1).split("\n")) + "\n",
    "one a line": lambda event: f"{json.dumps(event)}\n",
}


def delta(change: Event, finish: str | None = None, **more: Any) -> Event:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": change, "finish_reason": finish}], **more}


def calling(function: Event, **more: Any) -> Event:
    return delta({"tool_calls": [{"function": function, **more}]})


USAGE = {"prompt_tokens": 10, "completion_tokens": 5}
ARGUMENTS = '{"command": "ls"}'
TEXTS: dict[str, list[Event]] = {
    "text": [delta({"role": "assistant", "content": ""}), delta({"content": "Hello "}), delta({"content": "there"})],
    "null first": [delta({"role": "assistant", "content": None}), delta({"content": "Hello there"})],
    "parts": [delta({"content": [{"type": "text", "text": "Hello "}, {"type": "text", "text": "there"}]})],
    "reasoned": [delta({"reasoning_content": "Hm."}), delta({"content": "Hello there", "reasoning_content": None})],
    "tagged": [delta({"content": "<think>H"}), delta({"content": "m.</thi"}), delta({"content": "nk>Hello there"})],
    "as a message": [{"choices": [{"message": {"role": "assistant", "content": "Hello there"}}]}],
}
CALLS: dict[str, list[Event]] = {
    "pieces": [
        calling({"name": "bash", "arguments": ""}, index=0, id="t1"),
        calling({"arguments": ARGUMENTS[:5]}, index=0),
        calling({"arguments": ARGUMENTS[5:]}, index=0),
    ],
    "name again": [
        calling({"name": "bash", "arguments": ARGUMENTS[:5]}, index=0, id="t1"),
        calling({"name": "bash", "arguments": ARGUMENTS[5:]}, index=0, id="t1"),
    ],
    "whole": [calling({"name": "bash", "arguments": ARGUMENTS}, id="t1", type="function")],
    "object": [calling({"name": "bash", "arguments": {"command": "ls"}}, index=0, id=None)],
    "name alone": [
        calling({"name": "bash"}, index=0, id="t1"),
        calling({"name": None, "arguments": ARGUMENTS}, index="0"),
    ],
}
ENDINGS: dict[str, list[Event | str]] = {
    "usage behind": [delta({}, "tool_calls"), {"choices": [], "usage": USAGE}, "[DONE]"],
    "usage with it": [delta({}, "tool_calls", usage=USAGE), "[DONE]"],
    "no mark": [delta({}, "stop", usage=USAGE)],
    "capitals": [delta({}, "TOOL_CALLS", usage=USAGE), "[DONE]"],
    "old name": [delta({}, "function_call", usage=USAGE), {"choices": None}, "[DONE]"],
}


def openai_stream(framing: str, named: Iterable[str]) -> bytes:
    words, calls, ending = named
    write, body = FRAMINGS[framing], ""
    for event in [*TEXTS[words], *CALLS[calls], *ENDINGS[ending]]:
        done = "[DONE]\n" if framing == "one a line" else "data: [DONE]\n\n"
        body += done if isinstance(event, str) else write(event)
    return body.encode()


def ending(change: Event, **counts: int | None) -> Event:
    return {"type": "message_delta", "delta": change, "usage": {"output_tokens": 5, **counts}}


PING: Event = {"type": "ping"}
CLAUDE_BODIES: dict[str, list[Event]] = {
    "text and call": [*text(0, "Hello ", "there"), *tool(1, "bash", ARGUMENTS[:5], ARGUMENTS[5:])],
    "thought": [*thinking(0, "Hm.", signature="s"), *text(1, "Hello there"), *tool(2, "bash", ARGUMENTS)],
    "text at the start": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hello there"}},
        {"type": "content_block_stop", "index": 0},
        *tool(1, "bash", ARGUMENTS),
    ],
    "input at the start": [
        *text(0, "Hello there"),
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "bash", "input": {"command": "ls"}},
        },
        {"type": "content_block_stop", "index": 1},
    ],
    "pings and news": [
        {"type": "ping"},
        {"type": "news", "x": [1]},
        *text(0, "Hello there"),
        {"type": "ping"},
        *tool(1, "bash", ARGUMENTS),
    ],
}
CLAUDE_ENDS: dict[str, list[Event]] = {
    "usual": stop("tool_use"),
    "all counts last": [ending({"stop_reason": "tool_use"}, input_tokens=10), {"type": "message_stop"}],
    "no reason": [ending({}), {"type": "message_stop"}],
    "null fields": [
        ending({"stop_reason": "tool_use", "stop_sequence": None}, input_tokens=None),
        {"type": "message_stop", "usage": None},
    ],
}


def claude_stream(framing: str, named: Iterable[str]) -> bytes:
    body, ending = named
    write = FRAMINGS[framing]
    return "".join(map(write, [start(), *CLAUDE_BODIES[body], *CLAUDE_ENDS[ending]])).encode()


OPENAI_VARIANTS = list(itertools.product(FRAMINGS, itertools.product(TEXTS, CALLS, ENDINGS)))
CLAUDE_VARIANTS = list(itertools.product(FRAMINGS, itertools.product(CLAUDE_BODIES, CLAUDE_ENDS)))


async def read(protocol: str, body: bytes, size: int) -> ModelReply | None:
    """The reply that a body comes to, read in pieces of `size` bytes; None where it does not end."""

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), size):
            yield body[at : at + size]

    if protocol == "claude":
        builder = claude.AnthropicReplyBuilder(SERVICE, "m", set())
        async for batch in payloads_of(SERVICE, chunks()):
            for payload in batch:
                builder.feed(payload)
        return builder.reply() if builder.done else None
    other = openai.OpenAiReplyBuilder(SERVICE, "m", set(), 100)
    async for batch in payloads_of(SERVICE, chunks()):
        for payload in batch:
            list(other.feed(payload))
    return other.reply() if other.finished else None


def meaning(reply: ModelReply | None) -> Any:
    """Part of a reply that must be equal in every dialect."""
    if reply is None:
        return None
    calls = [(block.name, json.loads(block.input_json)) for block in reply.blocks if isinstance(block, ToolUseBlock)]
    return text_in(reply.blocks), calls, reply.stop, reply.usage.input_tokens, reply.usage.output_tokens


WHOLE = ("Hello there", [("bash", {"command": "ls"})], StopReason.TOOL_USE, 10, 5)


def test_the_suite_has_more_than_200_dialects() -> None:
    assert (len(OPENAI_VARIANTS), len(CLAUDE_VARIANTS)) == (1_200, 160)


@pytest.mark.parametrize("protocol", ["claude", "openai"])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("size", [11, 100_000])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
async def test_every_dialect_comes_to_the_same_reply(protocol: str, framing: str, size: int, mark: bytes) -> None:
    stream = claude_stream if protocol == "claude" else openai_stream
    variants = CLAUDE_VARIANTS if protocol == "claude" else OPENAI_VARIANTS
    wrong: dict[str, Any] = {}
    for kind, named in variants:
        if kind != framing:
            continue
        try:
            told = meaning(await read(protocol, mark + stream(kind, named), size))
        except ProviderError as error:
            told = error.message
        if told != WHOLE:
            wrong[f"{kind} {named}"] = told
    assert wrong == {}


ALL = [("openai", *one) for one in OPENAI_VARIANTS] + [("claude", *one) for one in CLAUDE_VARIANTS]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["drop", "double", "flip", "insert", "cut"]), st.integers(0, 5_000), st.binary(max_size=4)
    ),
    min_size=1,
    max_size=4,
)


def harmed(body: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    """The body with some of its bytes changed."""
    for way, place, extra in changes:
        at = place % (len(body) + 1)
        piece = body[at : at + 9]
        match way:
            case "drop":
                body = body[:at] + body[at + len(piece) :]
            case "double":
                body = body[:at] + piece + body[at:]
            case "flip":
                body = body[:at] + bytes(byte ^ 0x20 for byte in piece) + body[at + len(piece) :]
            case "insert":
                body = body[:at] + extra + body[at:]
            case _:
                body = body[:at]
    return body


@given(st.sampled_from(ALL), CHANGES, st.integers(1, 64))
def test_harmed_bytes_are_a_reply_an_end_or_a_sentence(variant: Any, changes: Any, size: int) -> None:
    protocol, framing, named = variant
    stream = claude_stream if protocol == "claude" else openai_stream

    async def heard() -> None:
        async with asyncio.timeout(PATIENCE):
            await read(protocol, harmed(stream(framing, named), changes), size)

    try:
        asyncio.run(heard())
    except ProviderError as error:
        assert error.message.endswith((".", "…")) or ":" in error.message
        assert not any(word in error.message for word in ("Wire", "Traceback", "Error(", "object at 0x", "msgspec"))
