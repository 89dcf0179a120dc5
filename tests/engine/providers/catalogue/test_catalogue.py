"""Known models, their hosts, and the cost of their replies."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from genai_prices import data

from engine.machine.messages import Usage
from engine.providers import catalogue
from engine.providers.catalogue import (
    ESTIMATED_WINDOW,
    SMALLEST_WINDOW,
    describe,
    find_known_model,
    is_hosted,
    load,
    price,
    runs_free,
)
from phoenix_tui.models.choice import DEFAULT_MODELS
from phoenix_tui.wiring.providers import DEFAULT_OPENAI_MODEL

SELLERS = {"claude": "anthropic", "gpt": "openai", "gemini": "google", "grok": "x-ai", "sonar": "perplexity"}
OUTDATED = ["claude-2", "c4ai-aya-expanse-32b", "claude-4-opus", "claude-4-sonnet", "M2-her"]
"""Listed there, and left as unknown here."""
_OTHER_KINDS = re.compile("embed|audio|realtime|live|tts|transcribe|ocr|voxtral")
MILLION = Usage(1_000_000, 1_000_000, 1_000_000, 1_000_000)


def cost(provider: str, name: str, usage: Usage) -> float | None:
    """The price without the noise of floating point."""
    dollars = price(provider, name, usage)
    return None if dollars is None else round(dollars, 9)


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("claude-sonnet-5-5", "claude-haiku-5-5"),
        ("claude-opus-4-5", "claude-haiku-4-5"),
        ("claude-haiku-5-5", "claude-haiku-5-5"),
        ("gpt-5.2", "gpt-5.4-nano"),
        ("gpt-6-sol", "gpt-5.4-nano"),
        ("o3", "gpt-5.4-nano"),
        ("gpt-4.1", "gpt-4.1-nano"),
        ("gemini-2.5-pro", "gemini-2.5-flash-lite"),
        ("gemini-3-pro-preview", "gemini-3.5-flash-lite"),
        ("grok-4.7", "grok-4-1-fast-non-reasoning"),
        ("mistral-large-4", "mistral-small-latest"),
        ("deepseek-reasoner", "deepseek-chat"),
        ("sonar-pro", "sonar"),
    ],
)
async def test_a_maker_has_a_small_model_that_costs_no_more(name: str, small: str) -> None:
    assert describe("any", name).small == small
    await load("any")
    seller = SELLERS.get(name.partition("-")[0], "openai" if name == "o3" else name.partition("-")[0])
    cheap, dear = price(seller, small, Usage(1_000, 1_000)), price(seller, name, Usage(1_000, 1_000))
    assert cheap is not None
    assert dear is not None
    assert cheap <= dear


@pytest.mark.parametrize(
    "name",
    ["anthropic/claude-sonnet-5.5", "us.anthropic.claude-haiku-4-5-v1:0", "llama3.2:3b", "mistral-7b", "kimi-k3"],
)
def test_other_names_have_no_small_model(name: str) -> None:
    assert describe("any", name).small == ""


@pytest.mark.parametrize(
    ("name", "window", "max_output"),
    [
        ("claude-sonnet-5-5", 1_000_000, 128_000),
        ("claude-opus-5-5-20260923", 1_000_000, 128_000),
        ("us.anthropic.claude-haiku-4-5-v1:0", 200_000, 64_000),
        ("anthropic/claude-sonnet-4-5", 200_000, 64_000),
        ("gpt-5-mini", 400_000, 128_000),
        ("gpt-5.5", 1_050_000, 128_000),
        ("openai/gpt-4.1", 1_000_000, 32_768),
        ("qwen2.5-coder:7b", 32_768, 0),
        ("google/gemini-2.5-pro", 1_000_000, 65_536),
        ("models/gemini-3.8-flash", 1_000_000, 65_536),
        ("gemini-2.0-flash", 1_000_000, 8_192),
        ("o1", 200_000, 100_000),
        ("o3-mini-2025-01-31", 200_000, 100_000),
        ("openai/o4-mini", 200_000, 100_000),
        ("o1-preview", 128_000, 32_768),
        ("x-ai/grok-4.7", 500_000, 0),
        ("grok-4-0709", 256_000, 0),
        ("grok-code-fast-1", 256_000, 0),
        ("deepseek-chat", 64_000, 0),
        ("moonshotai/kimi-k2-thinking", 262_144, 0),
        ("us.amazon.nova-pro-v1:0", 300_000, 0),
        ("meta.llama3-3-70b-instruct-v1:0", 131_072, 0),
        ("anthropic/claude-3.5-sonnet", 200_000, 8_192),
        ("anthropic/claude-opus-4.6", 1_000_000, 64_000),
        ("GLM-4.6", 131_072, 0),
    ],
)
def test_a_name_tells_window_and_output_limit(name: str, window: int, max_output: int) -> None:
    info = describe("test", name)
    assert (info.context_window, info.max_output, info.note) == (window, max_output, "")


def test_an_unknown_model_has_the_smallest_known_window_and_says_so() -> None:
    info = describe("test", "nobody-knows-1", local=True)
    assert (info.context_window, info.max_output, info.vision, info.local) == (SMALLEST_WINDOW, 0, None, True)
    assert info.note == ESTIMATED_WINDOW
    assert SMALLEST_WINDOW == 32_768


@pytest.mark.parametrize("name", ["o1x", "o5000", "orca-mini", "o", "gemini", "grok", "nova", ""])
def test_a_name_that_only_begins_like_a_known_one_is_unknown(name: str) -> None:
    assert describe("test", name).note == ESTIMATED_WINDOW


def test_the_windows_agree_with_genai_prices() -> None:
    """Models of the services themselves; smaller than theirs is allowed where several services offer one."""
    services = {
        "anthropic", "openai", "google", "x-ai", "deepseek", "moonshotai", "minimax", "mistral", "cohere",
        "zai",
    }  # fmt: skip
    listed = [
        (model.id, model.context_window)
        for provider in data.providers
        if provider.id in services
        for model in provider.models
        if model.context_window and not _OTHER_KINDS.search(model.id)
    ]
    assert len(listed) > 100
    wrong = {
        name: (known.window, window)
        for name, window in listed
        if (known := find_known_model(name)) is not None and not window / 2 <= known.window <= window * 1.06
    }
    assert wrong == {}
    assert [name for name, window in listed if window > SMALLEST_WINDOW and find_known_model(name) is None] == OUTDATED


def test_what_the_server_says_of_the_window_counts_more() -> None:
    info = describe("test", "claude-sonnet-5-5", window=50_000)
    assert (info.context_window, info.note) == (50_000, "")


def test_every_default_is_known() -> None:
    defaults = [*DEFAULT_MODELS.values(), DEFAULT_OPENAI_MODEL]
    assert [name for name in defaults if find_known_model(name) is None] == []


@pytest.mark.parametrize(
    ("name", "dollars"),
    [
        ("claude-sonnet-5-5", 2 + 10 + 2.5 + 0.1),
        ("claude-opus-5-5-20260923", 4 + 20 + 5 + 0.2),
        ("claude-haiku-5-5", 0.5 + 2.5 + 0.625 + 0.05),
        ("gpt-5-2025-08-07", 1.25 + 10 + 1.25 + 0.125),
    ],
)
def test_a_reply_costs_the_published_price(name: str, dollars: float) -> None:
    assert cost("any", name, MILLION) == round(dollars, 9)


def test_a_short_prompt_costs_less_where_length_decides() -> None:
    assert cost("anthropic", "claude-haiku-5-5", Usage(100_000, 0)) == 0.01
    assert cost("anthropic", "claude-haiku-5-5", Usage(50_000, 0, 50_001)) == round(0.025 + 0.050001 * 0.625, 9)


def test_a_model_on_this_machine_costs_nothing() -> None:
    assert price("ollama", "whatever", MILLION, local=True) == 0.0


async def test_other_prices_come_from_genai_prices_and_unknown_stays_unknown() -> None:
    await load("gpt-4.1-nano")
    assert cost("openai", "gpt-4.1-nano", Usage(1_000_000, 0)) == 0.1
    assert price("openai", "nobody-knows-1", MILLION) is None
    assert price("nobody", "nobody-knows-1", MILLION) is None


async def test_the_own_table_agrees_with_genai_prices() -> None:
    await load("gpt-4.1-nano")
    usage = Usage(1_000, 1_000, 0, 1_000)
    own = catalogue._PRICES
    wrong = {
        name: (cost("x", name, usage), looked)
        for name in own
        if (looked := catalogue._look_up_price("openai" if name.startswith("gpt") else "anthropic", name, usage))
        is None
        or round(looked, 9) != cost("x", name, usage)
    }
    assert wrong == {}


def test_looking_at_a_known_model_imports_no_price_library() -> None:
    code = (
        "import sys; from engine.providers.catalogue import price; from engine.machine.messages import Usage; "
        "price('a', 'claude-sonnet-5-5', Usage(1)); price('a', 'other', Usage(1)); print('genai_prices' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


MILLION_READ = Usage(1_000_000, 0)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o", "openai/gpt-4o", "anthropic/claude-sonnet-5-5", "us.anthropic.claude-haiku-4-5-v1:0",
        "o3-mini", "gemini-2.5-pro", "groq/llama-3.1-8b-instant", "gpt-oss:120b-cloud", "deepseek-chat",
    ],
)  # fmt: skip
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
    assert price(provider, name, MILLION_READ, local=True) == 0.0


async def test_on_loopback_a_hosted_model_has_its_price_and_an_unknown_one_none() -> None:
    await load("gpt-4o")
    for provider, name in (("openai", "gpt-4o"), ("gateway", "gpt-4o"), ("gateway", "openai/gpt-4o")):
        assert price(provider, name, MILLION_READ, local=True) == 2.5
    assert price("gateway", "claude-sonnet-5-5", MILLION_READ, local=True) == 2.0
    assert price("gateway", "team-default", MILLION_READ, local=True) is None
    assert price("gateway", "deepinfra/claude-nobody-sells-it", MILLION_READ, local=True) is None


async def test_a_host_in_the_name_sells_at_its_own_price() -> None:
    await load("gpt-4o")
    own = price("groq", "llama-3.3-70b-versatile", MILLION_READ)
    assert own is not None
    assert own > 0
    assert price("gateway", "groq/llama-3.3-70b-versatile", MILLION_READ, local=True) == own
    assert price("groq", "gemini-2.5-pro", MILLION_READ) is None
