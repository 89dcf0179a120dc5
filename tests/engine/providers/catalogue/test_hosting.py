"""Host of a model by its name: a gateway on loopback makes nothing free."""

from __future__ import annotations

import pytest

from engine.machine.messages import Usage
from engine.providers.catalogue import describe, is_hosted, load, price, runs_free

MILLION = Usage(1_000_000, 0)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o",
        "openai/gpt-4o",
        "anthropic/claude-sonnet-5-5",
        "us.anthropic.claude-haiku-4-5-v1:0",
        "o3-mini",
        "gemini-2.5-pro",
        "groq/llama-3.1-8b-instant",
        "gpt-oss:120b-cloud",
        "deepseek-chat",
    ],
)
def test_what_a_service_runs_is_not_local_on_loopback(name: str) -> None:
    assert is_hosted(name)
    assert not runs_free("ollama", name)
    assert not describe("openai", name, local=True).local


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("ollama", "my-finetune"),
        ("llamacpp", "anything"),
        ("local", "qwen2.5-coder-1.5b"),
        ("openai", "qwen2.5-coder:7b"),
        ("openai", "/models/thing-Q4_K_M.gguf"),
        ("openai", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("openai", "openai/gpt-oss-20b"),
        ("openai", "claude-distill:12b"),
        ("box", "llama3.1"),
    ],
)
def test_weights_that_run_on_this_machine_are_free(provider: str, name: str) -> None:
    assert price(provider, name, MILLION, local=True) == 0.0


async def test_on_loopback_a_hosted_model_has_its_price_and_an_unknown_one_none() -> None:
    await load("gpt-4o")
    for provider, name in (("openai", "gpt-4o"), ("gateway", "gpt-4o"), ("gateway", "openai/gpt-4o")):
        assert price(provider, name, MILLION, local=True) == 2.5
    assert price("gateway", "claude-sonnet-5-5", MILLION, local=True) == 2.0
    assert price("gateway", "team-default", MILLION, local=True) is None
    assert price("gateway", "deepinfra/claude-nobody-sells-it", MILLION, local=True) is None


async def test_a_host_in_the_name_sells_at_its_own_price() -> None:
    await load("gpt-4o")
    own = price("groq", "llama-3.3-70b-versatile", MILLION)
    assert own is not None
    assert own > 0
    assert price("gateway", "groq/llama-3.3-70b-versatile", MILLION, local=True) == own
    assert price("groq", "gemini-2.5-pro", MILLION) is None
