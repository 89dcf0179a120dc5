"""Every field of both protocols with a value of another type: no answer is lost, nothing hangs, no class name shows."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.machine.messages import TextBlock, ToolUseBlock, text_in
from engine.ports import ModelReply, ProviderError
from engine.providers.anthropic import from_wire as claude
from engine.providers.failures import Service
from engine.providers.openai_compatible import from_wire as openai
from tests.support.loopback_anthropic import start, stop, text, thinking, tool

SERVICE = Service("https://gateway.example", "KEY")
ODD: tuple[Any, ...] = (None, 7, 7.5, "7", "odd", True, [], {}, [None], {"text": "x"}, "")
CLAUDE: list[dict[str, Any]] = [
    start({"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0}),
    *thinking(0, "Hm.", signature="sig"),
    *text(1, "Hello ", "there"),
    *tool(2, "bash", '{"command": "ls"}'),
    *stop("tool_use", 5),
]
OPENAI: list[dict[str, Any]] = [
    {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [_choice]}
    for _choice in (
        {"index": 0, "delta": {"role": "assistant", "content": "", "reasoning_content": "Hm."}, "finish_reason": None},
        {"index": 0, "delta": {"content": "Hello ", "tool_calls": None}, "finish_reason": None},
        {"index": 0, "delta": {"content": "there", "refusal": None}, "finish_reason": None, "logprobs": None},
        {
            "index": 0,
            "delta": {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "t1",
                        "type": "function",
                        "function": {"name": "bash", "arguments": '{"command": "ls"}'},
                    }
                ]
            },
        },
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    )
] + [
    {
        "id": "c1",
        "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}},
    }
]
CONTENT = {"content", "text", "delta", "content_block", "choices", "type", "index", "tool_calls", "function", "error"}
"""Fields that are the answer, or without which its place is unknown."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every field of an event, at any depth."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from places(each, (*path, key))


def changed(event: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The event with another value at one place."""
    result = copy.deepcopy(event)
    inner: Any = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return result


def reply_of(protocol: str, events: list[dict[str, Any]]) -> ModelReply:
    """Reply read from these events."""
    if protocol == "claude":
        of_claude = claude.AnthropicReplyBuilder(SERVICE, "m", set())
        for event in events:
            of_claude.feed(json.dumps(event).encode())
        return of_claude.reply()
    of_openai = openai.OpenAiReplyBuilder(SERVICE, "m", set(), 100)
    for event in events:
        list(of_openai.feed(json.dumps(event).encode()))
    return of_openai.reply()


VARIANTS = [
    (protocol, number, path)
    for protocol, events in (("claude", CLAUDE), ("openai", OPENAI))
    for number, event in enumerate(events)
    for path in places(event)
]


def test_there_are_enough_of_them() -> None:
    assert len(VARIANTS) * len(ODD) > 1_000


@pytest.mark.parametrize("protocol", ["claude", "openai"])
def test_the_unchanged_answer_is_whole(protocol: str) -> None:
    reply = reply_of(protocol, CLAUDE if protocol == "claude" else OPENAI)
    assert text_in(reply.blocks) == "Hello there"
    assert [block.name for block in reply.blocks if isinstance(block, ToolUseBlock)] == ["bash"]


@pytest.mark.parametrize("protocol", ["claude", "openai"])
def test_a_field_of_another_type_costs_no_answer(protocol: str) -> None:
    events = CLAUDE if protocol == "claude" else OPENAI
    lost: list[str] = []
    for _, number, path in (each for each in VARIANTS if each[0] == protocol):
        for value in ODD:
            variant = [*events[:number], changed(events[number], path, value), *events[number + 1 :]]
            try:
                reply = reply_of(protocol, variant)
            except ProviderError as error:
                said = error.message
                if not CONTENT & set(map(str, path)) or "Wire" in said or "Expected" in said:
                    lost.append(f"{path} = {value!r}: {said}")
                continue
            if not CONTENT & set(map(str, path)) and text_in(reply.blocks) != "Hello there":
                lost.append(f"{path} = {value!r}: {reply.blocks}")
            assert all(isinstance(each.text, str) for each in reply.blocks if isinstance(each, TextBlock))
    assert lost == []


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(CONTENT)), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(VARIANTS), anything, st.booleans())
def test_whatever_stands_anywhere_is_an_answer_or_a_sentence(variant: Any, value: Any, doubled: bool) -> None:
    protocol, number, path = variant
    events = CLAUDE if protocol == "claude" else OPENAI
    odd = changed(events[number], path, value)
    try:
        reply_of(protocol, [*events[:number], odd, *([odd] if doubled else []), *events[number + 1 :]])
    except ProviderError as error:
        assert "Wire" not in error.message
        assert "Traceback" not in error.message
