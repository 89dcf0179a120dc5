"""Providers: well-known services by a key alone, tables that change or narrow them, and what is sent where."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import convert
from msgspec.structs import fields

from engine.machine.messages import Role, TextBlock
from engine.ports import ModelMessage, ModelRequest, ProviderError, RateLimit, Unit
from engine.providers.anthropic.client import AnthropicProvider
from engine.providers.openai_compatible.client import OpenAiCompatibleProvider
from engine.providers.openai_compatible.dialect import Dialect
from engine.providers.openai_compatible.openai_settings import OpenAiCompatibleSettings
from phoenix_tui.config.credentials import Credentials
from phoenix_tui.config.load import Layer, merge, parse_layer
from phoenix_tui.config.presets import PRESETS
from phoenix_tui.config.settings import BUILT_IN_KINDS, ConfigError
from phoenix_tui.models.choice import ChosenBy, ModelFacts, choose_model, needs_servers
from phoenix_tui.wiring.providers import ProviderRegistry
from phoenix_tui.wiring.start_facts import only_service
from tests.support.cli import phoenix_in
from tests.support.loopback import serve
from tests.support.loopback_openai import DONE, chunk, plays, refuses, usage

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


ASKED = ModelRequest("m", (), (ModelMessage(Role.USER, (TextBlock("hi"),)),))


def settings_of(reference: str, table: str = "", **environment: str) -> OpenAiCompatibleSettings:
    provider, _ = registry(table, **environment).resolve(reference)
    assert isinstance(provider, OpenAiCompatibleProvider)
    return provider._settings


def test_the_table_names_each_service_once_with_an_address_over_tls() -> None:
    assert not set(PRESETS) & {*BUILT_IN_KINDS, "local", "demo"}
    assert len({preset.base_url for preset in PRESETS.values()}) == len(PRESETS) <= 20
    for preset in PRESETS.values():
        assert re.fullmatch(r"(https://|\$\{AZURE_OPENAI_ENDPOINT\}/)[^?#@]+[^/]", preset.base_url)
        assert preset.variables


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"azure", "bedrock", "vertex"}))
def test_the_key_alone_makes_a_service_usable(name: str) -> None:
    preset = PRESETS[name]
    found = settings_of(f"{name}/m", **{preset.variables[0]: "key-0123456789"})
    assert (found.base_url, found.api_key) == (preset.base_url, "key-0123456789")
    assert found.key_variable == preset.variables[0]
    assert found.dialect == convert(dict(preset.quirks), Dialect)


async def test_without_its_key_the_variable_is_named_and_nothing_is_sent() -> None:
    provider, _ = registry("").resolve("huggingface/m")
    with pytest.raises(ProviderError, match=r"^No API key is set; set HF_TOKEN\.$"):
        await anext(provider.stream(ASKED))


def test_only_services_with_a_key_or_a_table_are_asked_for_their_models() -> None:
    made = registry('[providers.zai]\nheaders = {x = "y"}\n', GROQ_API_KEY="g")
    assert [name for name in PRESETS if made._is_set_up(name)] == ["groq", "zai"]


def test_an_address_of_variables_needs_them() -> None:
    found = settings_of("azure/mine", AZURE_OPENAI_ENDPOINT="https://r.openai.azure.com", AZURE_OPENAI_API_KEY="k" * 9)
    assert found.base_url == "https://r.openai.azure.com/openai/v1"
    assert found.key_headers == {"api-key": "k" * 9}
    amazon = settings_of("bedrock/m", AWS_REGION="eu-west-1", AWS_BEARER_TOKEN_BEDROCK="t")
    assert amazon.base_url == "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"
    with pytest.raises(ProviderError, match="names the variable AZURE_OPENAI_ENDPOINT, which is not set"):
        settings_of("azure/mine", AZURE_OPENAI_API_KEY="k")


@pytest.mark.parametrize("endpoint", ["javascript:alert(1)", "file:///etc/passwd", "r.openai.azure.com", " https://x"])
def test_a_variable_that_makes_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(ProviderError, match="must start with http:// or https://"):
        settings_of("azure/mine", AZURE_OPENAI_ENDPOINT=endpoint, AZURE_OPENAI_API_KEY="k")


def test_a_table_changes_a_service_or_makes_another_of_its_kind() -> None:
    text = """[providers.groq]
max_tokens = 5
[providers.work]
preset = "deepseek"
base_url = "https://gateway.example/v1"
[providers.second]
preset = "deepseek"
api_key_env = "SECOND_KEY"
[providers.mistral]
base_url = "http://127.0.0.1:9/v1"
"""
    keys = {"GROQ_API_KEY": "g", "DEEPSEEK_API_KEY": "d", "SECOND_KEY": "s"}
    groq, work, second, own = (settings_of(f"{name}/m", text, **keys) for name in ("groq", "work", "second", "mistral"))
    assert (groq.base_url, groq.max_tokens, groq.api_key) == ("https://api.groq.com/openai/v1", 5, "g")
    assert (work.base_url, work.api_key, work.dialect.reasoning_replay) == (
        "https://gateway.example/v1",
        "d",
        "reasoning_content",
    )
    assert (second.base_url, second.api_key) == ("https://api.deepseek.com/v1", "s")
    assert (own.base_url, own.key_variable, own.api_key) == ("http://127.0.0.1:9/v1", "", "")
    defaults = registry(text, **keys).defaults()
    assert (defaults["deepseek"], "mistral" in defaults) == ("deepseek-chat", False)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ('[providers.work]\npreset = "nope"', "config.toml:2: 'preset' must be one of openrouter, gemini"),
        ("[providers.work]\npreset = 5", "config.toml:2: 'preset' must be one of"),
        ('[providers.work]\npreset = ""', "config.toml:2: 'preset' must be one of"),
        ('[providers.work]\nkind = "anthropic"\npreset = "groq"', "'preset' works with kind = 'openai' only"),
        ('[providers.groq]\nkind = "anthropic"', "[providers.groq] needs 'base_url'"),
        ('[providers.groq]\nbase_url = "gopher://x"', "[providers.groq] needs 'base_url', an http:// or https://"),
        ("[providers.work]\nmax_tokens = 5", "[providers.work] needs 'base_url'"),
    ],
)
def test_a_wrong_table_is_named(table: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse_layer(table, Path("config.toml"), project=False)
    assert sentence in str(wrong.value)


def test_a_project_cannot_name_a_service() -> None:
    with pytest.raises(ConfigError, match="unknown key 'providers'"):
        parse_layer('[providers.work]\npreset = "groq"', Path("config.toml"), project=True)


def test_the_only_service_with_a_key_is_used_and_said_aloud() -> None:
    facts = ModelFacts(preset="deepseek/deepseek-chat")
    choice = choose_model(facts)
    assert (choice.reference, choice.chosen_by) == ("deepseek/deepseek-chat", ChosenBy.PRESET_KEY)
    assert choice.sentence == "The key of deepseek is set: using deepseek/deepseek-chat."
    assert not needs_servers(facts)
    assert choose_model(ModelFacts(preset="deepseek/deepseek-chat", has_openai=True)).reference == "openai"
    assert choose_model(ModelFacts(preset="deepseek/deepseek-chat", config="x/y")).reference == "x/y"


OWN = '[providers.deepseek]\nbase_url = "http://127.0.0.1:9/v1"\n'


@pytest.mark.parametrize(
    ("table", "names", "model"),
    [
        ("", ["DEEPSEEK_API_KEY"], "deepseek/deepseek-chat"),
        ("", ["DEEPSEEK_API_KEY", "HF_TOKEN"], "deepseek/deepseek-chat"),
        ("", ["DEEPSEEK_API_KEY", "MISTRAL_API_KEY"], ""),
        ("", ["GROQ_API_KEY"], ""),
        ("", [], ""),
        (OWN, ["DEEPSEEK_API_KEY"], ""),
        (OWN, ["DEEPSEEK_API_KEY", "MISTRAL_API_KEY"], "mistral/mistral-large-latest"),
    ],
)
def test_one_key_of_a_service_with_a_default_model_chooses_it(table: str, names: list[str], model: str) -> None:
    made = registry(table, **dict.fromkeys(names, "key"))
    assert only_service(made.settings, made.credentials) == model


async def test_a_refused_key_is_named_by_its_variable_also_where_the_address_is_the_users_own(tmp_path: Path) -> None:
    async with serve(refuses(401, {"message": "no such key"})) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="", MISTRAL_API_KEY="key-0123456789")
        (phoenix.home / "config.toml").write_text(f'[providers.mistral]\nbase_url = "{server.url}/v1"\n')
        ran = await phoenix.run("-p", "-m", "mistral/m", "hi")
    assert ran.code == 41
    assert "set MISTRAL_API_KEY to a key that 127.0.0.1:" in ran.err


async def test_doctor_names_the_keys_it_found(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, DEEPSEEK_API_KEY="d", HF_TOKEN="h")
    assert "deepseek from DEEPSEEK_API_KEY, huggingface from HF_TOKEN" in (await phoenix.run("doctor")).out


def test_every_key_of_a_service_is_kept_out_of_logs() -> None:
    environment = {variable: f"secret of {variable}" for preset in PRESETS.values() for variable in preset.variables}
    assert set(Credentials(environment, {}).secrets()) == set(environment.values())


async def test_a_service_answers_through_its_table(tmp_path: Path) -> None:
    answer = plays([chunk({"content": "Hi."}), chunk({}, "stop"), usage(10, 1), DONE])
    async with serve(answer) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="", GROQ_API_KEY="key-0123456789")
        table = f'[providers.work]\npreset = "groq"\nbase_url = "{server.url}/v1"\n'
        (phoenix.home / "config.toml").write_text(table)
        ran = await phoenix.run("-p", "-m", "work/m", "hi")
    assert (ran.code, ran.out) == (0, "Hi.\n")
    assert server.requests[-1].headers["authorization"] == "Bearer key-0123456789"


def test_every_quirk_is_a_field_of_the_dialect() -> None:
    known = {field.name for field in fields(Dialect)}
    for preset in PRESETS.values():
        assert set(preset.quirks) <= known
        convert(dict(preset.quirks), Dialect)


@pytest.mark.parametrize(
    ("region", "host"), [("global", "aiplatform.googleapis.com"), ("us-east5", "us-east5-aiplatform.googleapis.com")]
)
def test_vertex_is_reached_in_its_region(region: str, host: str) -> None:
    found = settings_of(
        "vertex/google/gemini-3-pro",
        CLOUD_ML_REGION=region,
        ANTHROPIC_VERTEX_PROJECT_ID="p-1",
        CLOUDSDK_AUTH_ACCESS_TOKEN="ya29.token",
    )
    assert found.base_url == f"https://{host}/v1/projects/p-1/locations/{region}/endpoints/openapi"
    assert found.key_headers == {"authorization": "Bearer ya29.token"}


def test_azure_behind_another_address_keeps_its_header() -> None:
    text = '[providers.work]\npreset = "azure"\nbase_url = "https://gateway.example/openai/v1"\n'
    assert settings_of("work/mine", text, AZURE_OPENAI_API_KEY="k" * 9).key_headers == {"api-key": "k" * 9}


@pytest.mark.parametrize(
    ("table", "reference", "environment"),
    [
        ('[providers.work]\npreset = "groq"\nbase_url = "http://10.0.0.5/v1"', "work/m", {"GROQ_API_KEY": "g"}),
        ('[providers.own]\nbase_url = "http://models.example/v1"', "own/m", {"OWN_API_KEY": "g"}),
        ("", "openai/m", {"OPENAI_BASE_URL": "http://models.example/v1", "OPENAI_API_KEY": "s"}),
        ("", "azure/m", {"AZURE_OPENAI_ENDPOINT": "http://models.example", "AZURE_OPENAI_API_KEY": "s"}),
        ("", "anthropic/m", {"ANTHROPIC_BASE_URL": "http://models.example", "ANTHROPIC_AUTH_TOKEN": "s"}),
        (
            '[providers.own]\nbase_url = "http://models.example/v1"\nheaders = {x = "${OWN}"}',
            "own/m",
            {"OWN": "secret"},
        ),
    ],
)
def test_no_key_crosses_the_network_without_encryption(table: str, reference: str, environment: dict[str, str]) -> None:
    with pytest.raises(ProviderError, match=r"is not sent to .* without encryption; use an https:// address"):
        registry(table, **environment).resolve(reference)


def test_without_a_key_a_server_of_the_local_network_may_be_plain() -> None:
    made = registry('[providers.own]\nbase_url = "http://10.0.0.5:8000/v1"')
    assert made.resolve("own/m")[1] == "m"


@pytest.mark.parametrize(("preset", "cost"), [("openrouter", 0.25), ("groq", None)])
async def test_a_run_costs_what_the_service_says_that_it_charged(
    tmp_path: Path, preset: str, cost: float | None
) -> None:
    counts = chunk(usage={"prompt_tokens": 10, "completion_tokens": 1, "cost": 0.25})
    answer = plays([chunk({"content": "Hi."}), chunk({}, "stop"), counts, DONE])
    async with serve(answer) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="", OPENROUTER_API_KEY="k" * 9, GROQ_API_KEY="k" * 9)
        table = f'[providers.work]\npreset = "{preset}"\nbase_url = "{server.url}/v1"\n'
        (phoenix.home / "config.toml").write_text(table)
        ran = await phoenix.run("-p", "-m", "work/unlisted-model", "--output-format", "json", "hi")
    assert json.loads(ran.out)["total_cost_usd"] == cost
