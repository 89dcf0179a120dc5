"""Effort in requests of services with OpenAI's protocol: the exact bodies, per service and family of models."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.machine.messages import Role, TextBlock
from engine.ports import ModelMessage, ModelRequest, ProviderNotice, StreamItem
from engine.providers.openai_compatible import OpenAiCompatibleProvider, OpenAiCompatibleSettings
from engine.providers.openai_compatible.dialect import EffortParameter, efforts_of, parameter_of
from engine.run_options import Effort
from tests.support.loopback import Loopback, serve
from tests.support.loopback_openai import DONE, chunk, plays, refuses

HELLO = ModelRequest("gpt-5", (), (ModelMessage(Role.USER, (TextBlock("Hi"),)),), max_tokens=100)
ANSWER = plays([chunk({"role": "assistant", "content": "Hello"}), chunk({}, "stop"), DONE])


def provider(loopback: Loopback, name: str, **more: Any) -> OpenAiCompatibleProvider:
    settings = OpenAiCompatibleSettings(name, f"{loopback.url}/v1", api_key="sk-test", window=9_000, **more)
    return OpenAiCompatibleProvider(settings)


async def answered(asked: OpenAiCompatibleProvider, request: ModelRequest) -> list[StreamItem]:
    return [item async for item in asked.stream(request)]


def kwargs(**fields: object) -> dict[str, object]:
    return {"chat_template_kwargs": fields}


@pytest.mark.parametrize(
    ("name", "model", "effort", "sent"),
    [
        ("openai", "gpt-5", "high", {"reasoning_effort": "high"}),
        ("openai", "gpt-5", "off", {"reasoning_effort": "minimal"}),
        ("openai", "gpt-5", "max", {"reasoning_effort": "high"}),
        ("openai", "gpt-5.1", "off", {"reasoning_effort": "none"}),
        ("openai", "gpt-5.4-mini", "max", {"reasoning_effort": "xhigh"}),
        ("openai", "gpt-6-sol", "max", {"reasoning_effort": "max"}),
        ("openai", "gpt-6-astra", "off", {"reasoning_effort": "low"}),
        ("openai", "o4-mini", "low", {"reasoning_effort": "low"}),
        ("openai", "gpt-4.1", "high", {}),
        ("openai", "gpt-4o", "high", {}),
        ("openai", "gpt-5-chat-latest", "high", {}),
        ("openai", "gpt-5", "default", {}),
        ("azure", "gpt-5", "medium", {"reasoning_effort": "medium"}),
        ("google", "gemini-2.5-flash", "off", {"reasoning_effort": "none"}),
        ("google", "gemini-3.1-pro-preview", "off", {"reasoning_effort": "low"}),
        ("google", "gemini-2.0-flash", "high", {}),
        ("groq", "openai/gpt-oss-120b", "high", {"reasoning_effort": "high"}),
        ("xai", "grok-4", "high", {}),
        ("xai", "grok-3-mini", "medium", {"reasoning_effort": "high"}),
        ("mistral", "mistral-large-4", "low", {"reasoning_effort": "high"}),
        ("mistral", "codestral-latest", "high", {}),
        ("openrouter", "anthropic/claude-opus-5", "max", {"reasoning": {"effort": "xhigh"}}),
        ("openrouter", "anthropic/claude-opus-5", "off", {"reasoning": {"effort": "none"}}),
        ("openrouter", "anthropic/claude-sonnet-5.5", "off", {"reasoning": {"effort": "low"}}),
        ("openrouter", "meta-llama/llama-3.3-70b-instruct", "high", {}),
        ("openrouter", "openai/gpt-5.4", "default", {}),
        ("deepseek", "deepseek-v4-pro", "off", {"thinking": {"type": "disabled"}}),
        ("deepseek", "deepseek-flash", "medium", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("deepseek", "deepseek-v4-flash", "max", {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("deepseek", "deepseek-chat", "max", {}),
        ("moonshot", "kimi-k2.6", "off", {"thinking": {"type": "disabled"}}),
        ("moonshot", "kimi-k3", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ("zai", "glm-4.6", "high", {"thinking": {"type": "enabled"}}),
        ("llamacpp", "Qwen3-8B-Q4_K_M.gguf", "off", kwargs(enable_thinking=False)),
        ("llamacpp", "Qwen3-8B-Q4_K_M.gguf", "max", kwargs(enable_thinking=True)),
        ("llamacpp", "gpt-oss-20b", "low", kwargs(reasoning_effort="low")),
        ("llamacpp", "Qwen2.5-Coder-7B.gguf", "off", {}),
        ("llamacpp", "qwen3-coder-30b", "off", {}),
        ("vllm", "Qwen/Qwen3-32B", "default", {}),
        ("ollama", "qwen3:8b", "off", {"reasoning_effort": "none"}),
        ("ollama", "llama3.2", "high", {}),
    ],
)
async def test_each_service_is_sent_its_own_fields_and_none_without_reasoning(
    name: str, model: str, effort: str, sent: dict[str, Any]
) -> None:
    async with serve(ANSWER) as loopback:
        asked = provider(loopback, name)
        await answered(asked, replace(HELLO, model=model, effort=Effort(effort)))
        await asked.close()
        body = loopback.requests[-1].json
    assert body == {
        "model": model,
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 100,
        "stream_options": {"include_usage": True},
        **sent,
    }


@pytest.mark.parametrize(
    ("name", "address", "parameter"),
    [
        ("openrouter", "https://openrouter.ai/api/v1", EffortParameter.REASONING),
        ("mine", "https://openrouter.ai/api/v1", EffortParameter.REASONING),
        ("mine", "https://api.deepseek.com/v1", EffortParameter.THINKING),
        ("mine", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", EffortParameter.SWITCH),
        ("openai", "https://api.openai.com/v1", EffortParameter.EFFORT),
        ("vllm", "http://127.0.0.1:8000/v1", EffortParameter.TEMPLATE),
        ("gateway", "http://127.0.0.1:4000/v1", EffortParameter.EFFORT),
    ],
)
def test_the_host_decides_on_the_parameter_and_then_the_name(
    name: str, address: str, parameter: EffortParameter
) -> None:
    assert parameter_of(name, address) is parameter


def test_a_model_is_offered_the_levels_that_change_something() -> None:
    offered = efforts_of(EffortParameter.TEMPLATE, "qwen3-8b")
    assert offered == (Effort.OFF, Effort.HIGH)
    assert efforts_of(EffortParameter.SWITCH, "qwen-plus") == (Effort.OFF, Effort.HIGH)
    assert efforts_of(EffortParameter.EFFORT, "gpt-4.1") == ()
    assert efforts_of(EffortParameter.EFFORT, "nobody-knows-it") == (Effort.LOW, Effort.MEDIUM, Effort.HIGH)


async def test_fields_of_the_users_own_win_over_the_effort() -> None:
    async with serve(ANSWER) as loopback:
        asked = provider(loopback, "openai", extra_body={"reasoning_effort": "minimal"})
        await answered(asked, replace(HELLO, effort=Effort.HIGH))
        await asked.close()
        assert loopback.requests[-1].json["reasoning_effort"] == "minimal"


@pytest.mark.parametrize(
    "words",
    [
        "Function tools with reasoning_effort are not supported for gpt-5 in /v1/chat/completions.",
        '"gpt-5" does not support thinking',
        "Unsupported value: 'reasoning_effort' does not support 'high' with this model.",
    ],
)
async def test_a_refused_effort_is_said_once_and_never_sent_again(words: str) -> None:
    request = replace(HELLO, effort=Effort.HIGH)
    async with serve(refuses(400, {"message": words}), ANSWER, ANSWER) as loopback:
        asked = provider(loopback, "openai")
        items = [*await answered(asked, request), *await answered(asked, request)]
        await asked.close()
        sent = ["reasoning_effort" in seen.json for seen in loopback.requests]
    notices = [item.text for item in items if isinstance(item, ProviderNotice)]
    assert notices == ["gpt-5 does not accept effort high; asked without it. /effort shows what it accepts."]
    assert sent == [True, False, False]
