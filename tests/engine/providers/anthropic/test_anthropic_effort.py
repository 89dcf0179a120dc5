"""Effort in requests of the Messages API: what each generation is sent, and what happens when it is refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.machine.messages import Role, TextBlock
from engine.ports import ModelMessage, ModelRequest, ProviderError, ProviderNotice, StreamItem
from engine.providers.anthropic import AnthropicProvider, AnthropicSettings
from engine.providers.anthropic.to_wire import request_body
from engine.run_options import Effort
from tests.support.loopback import Loopback, serve
from tests.support.loopback_anthropic import plays, recording, refuses, start, stop, text

HELLO = ModelRequest("claude-opus-5", ("Be brief.",), (ModelMessage(Role.USER, (TextBlock("Hi"),)),))
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
ANSWER = plays(recording(start(), text(0, "Hello"), stop()))
ALL = ("off", "low", "medium", "high", "max")


def fields(model: str, effort: str, *, budget: int = 0, max_tokens: int | None = None) -> dict[str, Any]:
    """The fields that the effort adds to a request with the default of a provider that sets no budget."""
    bare = request_body(replace(HELLO, model=model, max_tokens=max_tokens))
    body = request_body(replace(HELLO, model=model, max_tokens=max_tokens, effort=Effort(effort)), budget)
    common = {name: value for name, value in bare.items() if name not in {"thinking", "output_config"}}
    assert {name: value for name, value in body.items() if name in common} == common
    return {name: value for name, value in body.items() if name not in common}


def graded(effort: str) -> dict[str, Any]:
    return {"thinking": ADAPTIVE, "output_config": {"effort": effort}}


def budget(tokens: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("claude-opus-5", "default", {"thinking": ADAPTIVE}),
        ("claude-opus-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-opus-5", "low", graded("low")),
        ("claude-opus-5", "medium", graded("medium")),
        ("claude-opus-5", "high", graded("high")),
        ("claude-opus-5", "max", graded("max")),
        ("claude-sonnet-5-5", "default", {"thinking": ADAPTIVE}),
        ("claude-sonnet-5-5", "off", graded("low")),
        ("claude-mythos-5", "off", graded("low")),
        ("claude-opus-4-8", "off", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-5-5", "default", {}),
        ("claude-haiku-5-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-5-5", "high", graded("high")),
        ("claude-sonnet-4-6", "max", graded("max")),
        ("claude-sonnet-4-5", "default", {}),
        ("claude-sonnet-4-5", "off", {}),
        ("claude-sonnet-4-5", "low", budget(2_048)),
        ("claude-haiku-4-5", "medium", budget(8_192)),
        ("claude-opus-4-1", "high", budget(16_384)),
        ("claude-opus-4-1", "max", budget(24_000)),
        ("claude-sonnet-4-5", "max", budget(32_768)),
        ("claude-3-5-haiku", "max", {}),
        ("somebody-else", "max", {}),
    ],
)
def test_each_generation_is_sent_its_own_fields_and_none_without_reasoning(
    model: str, effort: str, sent: dict[str, Any]
) -> None:
    from anthropic.types import OutputConfigParam, ThinkingConfigParam  # noqa: PLC0415 - a second for each worker
    from pydantic import TypeAdapter  # noqa: PLC0415 - as above

    assert fields(model, effort) == sent
    if "thinking" in sent:
        TypeAdapter[Any](ThinkingConfigParam).validate_python(sent["thinking"], strict=True)
    if "output_config" in sent:
        TypeAdapter[Any](OutputConfigParam).validate_python(sent["output_config"], strict=True)


def test_a_budget_leaves_a_quarter_of_a_small_output_limit_and_a_tiny_one_has_none() -> None:
    assert fields("claude-sonnet-4-5", "max", max_tokens=4_000) == budget(3_000)
    assert fields("claude-sonnet-4-5", "max", max_tokens=1_024) == {}


def test_a_budget_of_the_settings_counts_for_the_default_effort_alone() -> None:
    assert fields("claude-sonnet-4-5", "default", budget=4_000) == budget(4_000)
    assert fields("claude-sonnet-4-5", "off", budget=4_000) == {}
    assert fields("claude-haiku-5-5", "default", budget=4_000) == {"thinking": ADAPTIVE}
    assert fields("claude-haiku-5-5", "low", budget=4_000) == graded("low")


@pytest.mark.parametrize(
    ("model", "levels"),
    [("claude-opus-5", ALL), ("claude-sonnet-5-5", ALL[1:]), ("claude-sonnet-4-5", ALL), ("claude-3-5-haiku", ())],
)
def test_a_model_is_described_with_its_levels(model: str, levels: tuple[str, ...]) -> None:
    assert AnthropicProvider(AnthropicSettings()).describe(model).efforts == tuple(map(Effort, levels))


def provider(loopback: Loopback) -> AnthropicProvider:
    return AnthropicProvider(AnthropicSettings(api_key="sk-test", base_url=loopback.url))


async def answered(asked: AnthropicProvider, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in asked.stream(request)]


async def test_a_refused_effort_is_said_once_and_never_sent_again() -> None:
    refusal = refuses(400, "invalid_request_error", "output_config.effort: 'max' is not supported on this model")
    request = replace(HELLO, effort=Effort.MAX)
    async with serve(refusal, ANSWER, ANSWER, ANSWER) as loopback:
        asked = provider(loopback)
        first, second = [await answered(asked, request) for _ in range(2)]
        await answered(asked, replace(request, effort=Effort.HIGH))
        described = asked.describe("claude-opus-5").efforts
        await asked.close()
        configs = [seen.json.get("output_config") for seen in loopback.requests]
    notices = [item.text for item in (*first, *second) if isinstance(item, ProviderNotice)]
    assert notices == ["claude-opus-5 does not accept effort max; asked without it. /effort shows what it accepts."]
    assert configs == [{"effort": "max"}, None, None, {"effort": "high"}]
    assert Effort.MAX not in described


async def test_a_refusal_of_something_else_stays_a_refusal() -> None:
    refusal = refuses(400, "invalid_request_error", "messages: at least one message is required")
    async with serve(refusal) as loopback:
        asked = provider(loopback)
        with pytest.raises(ProviderError, match="at least one message"):
            await answered(asked, replace(HELLO, effort=Effort.MAX))
        await asked.close()
        assert len(loopback.requests) == 1


async def test_a_refusal_about_thinking_without_an_effort_ends_the_call() -> None:
    refusal = refuses(400, "invalid_request_error", "thinking: Expected `thinking` block, but found `tool_use`")
    async with serve(refusal) as loopback:
        asked = provider(loopback)
        with pytest.raises(ProviderError, match="found"):
            await answered(asked, HELLO)
        await asked.close()
        assert len(loopback.requests) == 1
