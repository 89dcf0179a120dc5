"""`[providers.NAME]` from the file to the wire: limits, headers, fields of the body, gateways and prices."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.machine.messages import Usage
from phoenix_tui.cli.blocks import usage_object
from tests.support.cli import Phoenix, phoenix_in
from tests.support.counting_server import CountingServer
from tests.support.journeys import Claude, calls, says
from tests.support.loopback import Loopback, Talk, serve
from tests.support.loopback_agents import by_last_message, submits
from tests.support.loopback_anthropic import plays as plays_claude
from tests.support.loopback_anthropic import recording, start, stop, text
from tests.support.loopback_openai import DONE, chunk, plays, refuses, usage

ANSWER = plays([chunk({"content": "Hi."}), chunk({}, "stop"), usage(10, 1), DONE])
SECRET = "planted-0123456789"


def configured(folder: Path, server: Loopback, table: str, path: str = "/v1", **extra: str) -> Phoenix:
    phoenix = phoenix_in(folder, PHOENIX_MODEL="", TEAM=SECRET, **extra)
    words = f'[providers.work]\nbase_url = "{server.url}{path}"\n{table}\n'
    (phoenix.home / "config.toml").write_text(words)
    return phoenix


async def test_limits_headers_query_and_body_reach_the_server(tmp_path: Path) -> None:
    table = """max_tokens = 1234
context_window = 9000
headers = {X-Team = "a-${TEAM}", Authorization = "Token t"}
query = {tenant = "a b"}
extra_body = {reasoning = {effort = "low"}, seed = 7}"""
    async with serve(ANSWER) as server:
        phoenix = configured(tmp_path, server, table)
        ran = await phoenix.run("-p", "--output-format", "json", "-m", "work/thing", "hi")
    seen = server.requests[-1]
    body = json.loads(seen.body)
    assert (ran.code, seen.path) == (0, "/v1/chat/completions?tenant=a+b")
    assert (seen.headers["x-team"], seen.headers["authorization"]) == (f"a-{SECRET}", "Token t")
    assert (body["max_tokens"], body["reasoning"], body["seed"]) == (1234, {"effort": "low"}, 7)
    used = ran.json["modelUsage"]["gpt-5"]
    assert (used["contextWindow"], used["maxOutputTokens"]) == (9000, 1234)


async def test_what_azure_wants_behind_its_address_stays(tmp_path: Path) -> None:
    async with serve(ANSWER) as server:
        path = "/openai/deployments/mine?api-version=2024-10-21"
        ran = await configured(tmp_path, server, "", path).run("-p", "-m", "work/mine", "hi")
    assert (ran.code, server.requests[-1].path) == (
        0,
        "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
    )


async def test_a_provider_of_the_other_kind_has_limits_and_headers_too(tmp_path: Path) -> None:
    table = 'kind = "anthropic"\nmax_tokens = 1234\ncontext_window = 9000\nheaders = {X-Team = "a", X-Api-Key = "k"}'
    async with serve(plays_claude(recording(start(), text(0, "Hello."), stop()))) as server:
        ran = await configured(tmp_path, server, table, "").run("-p", "-m", "work/claude-sonnet-5-5", "hi")
    seen = server.requests[-1]
    assert (ran.code, ran.err, seen.headers["x-team"]) == (0, "", "a")
    assert json.loads(seen.body)["max_tokens"] == 1234


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("headers = 5", "config.toml:3: 'headers' must be a table, such as headers = {name = \"value\"}."),
        ('headers = {"a b" = "x"}', "config.toml:3: 'headers' cannot set 'a b'."),
        ('headers = {Host = "evil"}', "config.toml:3: 'headers' cannot set 'Host'."),
        ('headers = {x = "a\\r\\nHost: evil"}', "config.toml:3: 'x' in 'headers' must be text on one line."),
        ("query = {x = 5}", "config.toml:3: 'x' in 'query' must be text on one line."),
        (
            "extra_body = {messages = []}",
            "config.toml:3: 'extra_body' cannot set 'messages', which Phoenix sets itself.",
        ),
        ("extra_body = {x = nan}", "config.toml:3: 'x' in 'extra_body' cannot be sent as JSON."),
        ("extra_body = {x = 2026-11-23}", "config.toml:3: 'x' in 'extra_body' cannot be sent as JSON."),
        ("max_tokens = -1", "config.toml:3: 'max_tokens' must be a whole number"),
        (
            "tokens_per_minute = -1",
            "config.toml:3: 'tokens_per_minute' must be a whole number, 0 for no limit, not -1.",
        ),
        ("tokens_per_minute = nan", "config.toml:3: 'tokens_per_minute' must be a whole number, 0 for no limit"),
        ('requests_per_minute = "many"', "config.toml:3: 'requests_per_minute' must be a whole number"),
        ("requests_per_minute = true", "config.toml:3: 'requests_per_minute' must be a whole number"),
        ('headers = {x = "${NOT_SET}"}', "[providers.work] headers names the variable NOT_SET, which is not set"),
    ],
)
async def test_a_mistake_is_named_before_anything_is_sent(tmp_path: Path, table: str, sentence: str) -> None:
    async with serve(ANSWER) as server:
        ran = await configured(tmp_path, server, table).run("-p", "-m", "work/thing", "hi")
        assert (ran.code, server.requests) == (2, [])
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


async def test_a_secret_of_a_header_stands_in_no_text(tmp_path: Path) -> None:
    async with serve(refuses(400, {"message": f"bad team {SECRET}"})) as server:
        phoenix = configured(tmp_path, server, 'headers = {X-Team = "${TEAM}"}')
        ran = await phoenix.run("-p", "--debug", "-m", "work/thing", "hi")
    assert ran.code == 1
    assert "bad team [key]" in ran.err
    kept = [path for path in phoenix.home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert kept == []


@pytest.mark.parametrize(
    ("said", "limits"),
    [
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", [64_000, 8192]),
        ("`max_tokens` must be less than or equal to `8192`, the maximum value", [64_000, 8192]),
        ("max_tokens is too large: 64000. This model supports at most 8192 completion tokens", [64_000, 8192]),
        ("max_tokens is too high for this model", [64_000, None]),
    ],
)
async def test_a_limit_is_learned_in_every_servers_words(tmp_path: Path, said: str, limits: list[int | None]) -> None:
    async with serve(refuses(400, {"message": said}), ANSWER) as server:
        phoenix = configured(tmp_path, server, "max_tokens = 64000")
        ran = await phoenix.run("-p", "-m", "work/thing", "hi")
    assert (ran.code, ran.out) == (0, "Hi.\n")
    assert [json.loads(seen.body).get("max_tokens") for seen in server.requests] == limits


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("", "Its base URL may lack /v1 at the end: http://127.0.0.1:"),
        ("/v1/v1", "Its base URL has /v1 twice."),
        ("/v1/chat/completions", "Its base URL should end before /chat/completions."),
        ("/v1", ""),
    ],
)
async def test_an_address_that_is_not_known_gets_a_hint(tmp_path: Path, path: str, hint: str) -> None:
    async def unknown(talk: Talk) -> None:
        await talk.plain(404, b"404 page not found")

    async with serve(unknown) as server:
        ran = await configured(tmp_path, server, "", path).run("-p", "-m", "work/thing", "hi")
    assert ran.code == 1
    assert "does not know this model or address: 404 page not found" in ran.err
    assert (hint or "not found\n") in ran.err


COSTLY_ANSWER = plays([chunk({"content": "Hi."}), chunk({}, "stop"), usage(1_000_000, 0), DONE])
JSON = ("--output-format", "json")


def gateway(folder: Path, url: str) -> Phoenix:
    given = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "sk-planted-0123456789", "PHOENIX_MODEL": ""}
    return phoenix_in(folder, **given)


@pytest.mark.parametrize(("model", "dollars"), [("gpt-4o", 2.5), ("qwen2.5-coder:7b", 0.0), ("team-default", None)])
async def test_a_model_costs_the_same_wherever_its_gateway_listens(
    tmp_path: Path, model: str, dollars: float | None
) -> None:
    async with serve(COSTLY_ANSWER) as server:
        ran = await gateway(tmp_path, server.url).run("-p", *JSON, "-m", f"openai/{model}", "hi")
    assert (ran.code, ran.json["total_cost_usd"]) == (0, dollars)


async def test_a_budget_is_kept_on_loopback(tmp_path: Path) -> None:
    call = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "bash", "arguments": '{"command": "true"}'}}]}
    asks = plays([chunk(call), chunk({}, "tool_calls"), usage(1_000_000, 0), DONE])
    async with serve(asks) as server:
        flags = ("-m", "openai/gpt-4o", "--max-budget-usd", "1", "--permission-mode", "auto")
        ran = await gateway(tmp_path, server.url).run("-p", *JSON, *flags, "hi")
        assert len(server.requests) == 1
    assert (ran.code, ran.json["subtype"], ran.json["total_cost_usd"]) == (53, "error_max_budget_usd", 2.5)


async def test_a_budget_without_a_price_is_refused_in_one_sentence(tmp_path: Path) -> None:
    async with serve(COSTLY_ANSWER) as server:
        ran = await gateway(tmp_path, server.url).run("-p", "-m", "openai/team-default", "--max-budget-usd", "1", "hi")
    assert (ran.code, server.requests) == (2, [])
    assert ran.err == (
        "phoenix: The price of openai/team-default is unknown, so "
        "--max-budget-usd cannot be enforced; use --max-turns.\n"
    )


async def test_a_sub_agent_without_a_price_ends_a_run_with_a_budget(claude: Claude) -> None:
    answers = {
        "Sub-agent results": says("Never asked."),
        "TASK": submits("found"),
        "go": calls("spawn_agents", tasks=[{"task": "TASK", "profile": "odd"}]),
    }
    phoenix, _ = await claude(by_last_message(answers))
    (phoenix.home / "profiles").mkdir()
    words = "---\ndescription: odd\nmodel: anthropic/claude-nobody-knows\n---\nYou are odd.\n"
    (phoenix.home / "profiles" / "odd.md").write_text(words)
    flags = ("--permission-mode", "auto", "--max-budget-usd", "5")
    ran = await phoenix.run("-p", *JSON, *flags, "go")
    assert (ran.code, ran.json["subtype"], ran.json["total_cost_usd"]) == (53, "error_max_budget_usd", None)
    assert ran.json["error"] == (
        "The run was stopped: --max-budget-usd cannot be enforced, because "
        "the price of a model that this run used is unknown."
    )


async def test_the_window_of_a_server_on_this_machine_is_the_one_it_runs_with(tmp_path: Path) -> None:
    async def answer(talk: Talk) -> None:
        if talk.seen.method == "GET":
            await talk.plain(200, b'{"data": [{"id": "some.gguf", "meta": {"n_ctx": 4096, "n_ctx_train": 32768}}]}')
        else:
            await COSTLY_ANSWER(talk)

    async with serve(answer) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="llamacpp/some.gguf")
        (phoenix.home / "config.toml").write_text(f'[providers.llamacpp]\nbase_url = "{server.url}/v1"\n')
        ran = await phoenix.run("-p", *JSON, "hi")
    assert (ran.code, [told["contextWindow"] for told in ran.json["modelUsage"].values()]) == (0, [4_096]), ran
    with closing(sqlite3.connect(phoenix.home / "phoenix.db")) as database:
        assert database.execute("SELECT context_window FROM conversations").fetchall() == [(4_096,)]


async def test_an_error_500_of_a_gateway_on_loopback_is_tried_again(tmp_path: Path) -> None:
    async with serve(refuses(500, {"message": "upstream connect error"}), COSTLY_ANSWER) as server:
        ran = await gateway(tmp_path, server.url).run("-p", "-m", "openai/gpt-4o", "hi")
    assert (ran.code, ran.out) == (0, "Hi.\n")
    assert "upstream connect error Retrying in 1 s" in ran.err


async def test_an_ollama_elsewhere_is_reached_by_its_variable_and_listed(tmp_path: Path) -> None:
    async def answer(talk: Talk) -> None:
        if talk.seen.path == "/api/tags":
            await talk.plain(200, b'{"models":[{"name":"llama3.2:3b"}]}')
        elif talk.seen.method == "GET":
            await talk.plain(404, b"404 page not found")
        else:
            await COSTLY_ANSWER(talk)

    async with serve(answer) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="", OLLAMA_HOST=server.url.removeprefix("http://"))
        listed = await phoenix.run("models", "--json")
        ran = await phoenix.run("-p", *JSON, "-m", "ollama", "hi")
    assert "ollama/llama3.2:3b" in [model["model"] for model in listed.json]
    assert (ran.code, ran.json["model"], ran.json["total_cost_usd"]) == (0, "ollama/llama3.2:3b", 0.0)


@pytest.mark.parametrize(("said", "turns"), [("[tool]", 2), ("[cut]", 2), ("[retry]", 1), ("[agents]", 2)])
async def test_a_result_says_what_the_server_counted(claude: Claude, said: str, turns: int) -> None:
    server = CountingServer()
    phoenix, _ = await claude(server)
    ran = await phoenix.run("-p", "--permission-mode", "auto", "--output-format", "json", said)
    listed = await phoenix.run("conversations", "list", "--json")
    result = ran.json
    assert (ran.code, result["num_turns"]) == (0, turns)
    assert result["total_usage"] == usage_object(server.told)
    assert result["total_cost_usd"] == pytest.approx(server.cost, abs=1e-9)
    assert listed.json[0]["total_cost_usd"] == pytest.approx(server.cost, abs=1e-9)
    agents = sum((Usage(**_plain(each["usage"])) for each in result["agents"]), Usage())
    assert usage_object(Usage(**_plain(result["usage"])) + agents) == usage_object(server.told)


def _plain(usage: dict[str, int]) -> dict[str, int]:
    names = {"cache_creation_input_tokens": "cache_creation_tokens", "cache_read_input_tokens": "cache_read_tokens"}
    return {names.get(name, name): count for name, count in usage.items()}
