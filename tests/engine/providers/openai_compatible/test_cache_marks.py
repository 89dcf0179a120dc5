"""Cache marks for Claude behind a gateway: where they are, and that they change nothing else."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from engine.machine.messages import Block, Role, TextBlock, ToolResultBlock, ToolUseBlock
from engine.ports import ModelMessage, ModelReply, ModelRequest, ProviderError
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from engine.providers.openai_compatible.dialect import Dialect, learn_dialect
from engine.providers.openai_compatible.to_wire import with_marks
from tests.support.loopback import serve
from tests.support.loopback_openai import DONE, chunk, plays
from tools.contract import JsonValue

MARK = {"type": "ephemeral"}
SYSTEM = ("You are an agent.", "<environment>today</environment>")


def said(role: Role, *blocks: Block) -> ModelMessage:
    return ModelMessage(role, blocks)


def steps(count: int) -> tuple[ModelMessage, ...]:
    """A question, and `count` calls with their results."""
    messages = [said(Role.USER, TextBlock("Hi"))]
    for number in range(count):
        name = f"call_{number}"
        messages.append(said(Role.ASSISTANT, ToolUseBlock(name, "bash", "{}")))
        messages.append(said(Role.USER, ToolResultBlock(name, (TextBlock(f"result {number}"),))))
    return tuple(messages)


async def bodies(model: str, *requests: tuple[ModelMessage, ...], marks: bool = True) -> list[Any]:
    """The bodies of requests to one provider."""
    ended = [chunk({"content": "Done."}), chunk({}, "stop"), DONE]
    async with serve(plays(ended)) as server:
        dialect = Dialect(cache_marks=marks)
        asked = OpenAiCompatibleProvider(
            OpenAiCompatibleSettings(
                name="gate", base_url=f"{server.url}/v1", api_key="key-0123456789", dialect=dialect
            )
        )
        try:
            for messages in requests:
                stream = asked.stream(ModelRequest(model, SYSTEM, messages))
                assert [one async for one in stream if isinstance(one, ModelReply)]
        finally:
            await asked.close()
    return [json.loads(seen.body) for seen in server.requests]


def marked(body: Any) -> list[int]:
    """Places of the messages that have a mark."""
    return [place for place, one in enumerate(body["messages"]) if json.dumps(one).count('"cache_control"') == 1]


def bare(message: Any) -> Any:
    """A message without its mark, its text as one string."""
    content = message["content"]
    text = "".join(part["text"] for part in content) if isinstance(content, list) else content
    return message | {"content": text}


async def test_claude_gets_marks_at_the_system_prompt_and_before_what_changes() -> None:
    first, second = await bodies("anthropic/claude-sonnet-5.5", steps(2), steps(3))
    assert [one["role"] for one in second["messages"]] == ["system", "user", *["assistant", "tool"] * 3]
    assert (marked(first), marked(second)) == ([0, 1, 3], [0, 3, 5])
    assert second["messages"][5]["content"] == [{"type": "text", "text": "result 1", "cache_control": MARK}]
    kept = len(first["messages"]) - 1
    assert [*map(bare, first["messages"][:kept])] == [*map(bare, second["messages"][:kept])]


async def test_a_single_question_is_marked_at_the_system_prompt_alone() -> None:
    [body] = await bodies("anthropic/claude-sonnet-5.5", steps(0))
    assert marked(body) == [0]


@pytest.mark.parametrize(("model", "marks"), [("openai/gpt-5.5", True), ("anthropic/claude-sonnet-5.5", False)])
async def test_other_models_and_other_services_get_none(model: str, marks: bool) -> None:
    [body] = await bodies(model, steps(2), marks=marks)
    assert marked(body) == []


def test_messages_without_a_text_at_their_end_are_passed_over() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    odd: list[Any] = [{"role": "user", "content": [image]}, {"role": "user", "content": ""}, {"role": "user"}, 7]
    messages = cast("list[JsonValue]", [{"role": "user", "content": "Hi"}, *odd, {"role": "user", "content": "end"}])
    assert with_marks(messages) == messages
    assert with_marks([]) == []
    two_parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert with_marks([{"role": "system", "content": cast("JsonValue", two_parts)}]) == [
        {"role": "system", "content": [two_parts[0], two_parts[1] | {"cache_control": MARK}]}
    ]


def test_a_service_that_refuses_marks_gets_none_from_then_on() -> None:
    refusal = ProviderError("Unknown field: cache_control", kind="invalid_request", retryable=False)
    changed = learn_dialect(Dialect(cache_marks=True), refusal)
    assert changed is not None
    assert changed.cache_marks is False
    assert learn_dialect(changed, refusal) is None
