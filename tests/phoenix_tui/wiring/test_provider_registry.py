"""Providers from config.toml, environment and stored keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.ports import RateLimit, Unit
from engine.providers.anthropic.client import AnthropicProvider
from engine.providers.openai_compatible.client import OpenAiCompatibleProvider
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.load import Layer, merge, parse_layer
from phoenix_tui.wiring.providers import ProviderRegistry

CONFIG = """
[providers.anthropic]
transport = "sdk"
idle_timeout = 30
thinking_budget = 2048

[providers.bedrock]
base_url = "https://bedrock.example"
kind = "anthropic"
backend = "bedrock"
api_key_env = "BEDROCK_TOKEN"

[providers.ollama]
base_url = "http://10.0.0.5:11434/v1"
tool_protocol = "json"

[providers.groq]
base_url = "https://api.groq.example/openai/v1"
api_key_env = "GROQ_TOKEN"
idle_timeout = 12.5
"""


def registry(text: str, **environment: str) -> ProviderRegistry:
    settings = merge(parse_layer(text, Path("config.toml"), project=False), Layer(), Layer(), Layer())
    given: Mapping[str, str] = environment
    return ProviderRegistry(settings, Credentials(given, {}), given)


def test_a_table_changes_how_claude_is_asked() -> None:
    provider, model = registry(CONFIG, ANTHROPIC_API_KEY="sk-1").resolve("anthropic")
    assert isinstance(provider, AnthropicProvider)
    settings = provider._settings
    assert model == "claude-sonnet-5-5"
    assert (settings.transport, settings.idle_timeout, settings.thinking_budget) == ("sdk", 30.0, 2048)
    assert (settings.api_key, settings.base_url) == ("sk-1", "https://api.anthropic.com")


def test_an_added_provider_keeps_its_name_and_names_its_own_key() -> None:
    made = registry(CONFIG, BEDROCK_TOKEN="b-1", GROQ_TOKEN="g-1", ANTHROPIC_AUTH_TOKEN="not for others")
    bedrock, _ = made.resolve("bedrock/claude")
    assert isinstance(bedrock, AnthropicProvider)
    assert (bedrock.name, bedrock._settings.backend, bedrock._settings.key_variable) == (
        "bedrock",
        "bedrock",
        "BEDROCK_TOKEN",
    )
    assert (bedrock._settings.api_key, bedrock._settings.auth_token) == ("b-1", "")
    groq, _ = made.resolve("groq/llama")
    assert isinstance(groq, OpenAiCompatibleProvider)
    assert (groq._settings.api_key, groq._settings.key_variable, groq._settings.patience) == ("g-1", "GROQ_TOKEN", 12.5)


def test_a_server_of_this_machine_can_be_told_another_address_and_protocol() -> None:
    made = registry(CONFIG)
    ollama, _ = made.resolve("ollama/qwen")
    vllm, _ = made.resolve("vllm/any")
    assert isinstance(ollama, OpenAiCompatibleProvider)
    assert isinstance(vllm, OpenAiCompatibleProvider)
    assert (ollama._settings.base_url, ollama._settings.tool_protocol) == ("http://10.0.0.5:11434/v1", "json")
    assert (vllm._settings.base_url, vllm._settings.tool_protocol) == ("http://127.0.0.1:8000/v1", "native")


def test_the_environment_still_names_the_address_of_a_provider_without_one() -> None:
    made = registry(CONFIG, ANTHROPIC_BASE_URL="http://127.0.0.1:1", OPENAI_BASE_URL="http://127.0.0.1:2/v1")
    claude, _ = made.resolve("anthropic")
    openai, _ = made.resolve("openai/any")
    assert isinstance(claude, AnthropicProvider)
    assert isinstance(openai, OpenAiCompatibleProvider)
    assert (claude._settings.base_url, openai._settings.base_url) == ("http://127.0.0.1:1", "http://127.0.0.1:2/v1")


@pytest.mark.parametrize(("kind", "counts_cached"), [("openai", True), ("anthropic", False)])
def test_rate_limits_of_a_table_are_those_of_its_models(kind: str, counts_cached: bool) -> None:
    table = f"""[providers.work]
base_url = "https://gateway.example"
kind = "{kind}"
tokens_per_minute = 40000
requests_per_minute = 50
"""
    described = registry(table).describe("work/m")
    assert described is not None
    assert described.limits == (
        RateLimit(Unit.TOKENS, 40_000, counts_cached=counts_cached),
        RateLimit(Unit.REQUESTS, 50, counts_cached=counts_cached),
    )
