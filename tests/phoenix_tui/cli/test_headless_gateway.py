"""`phoenix -p` through a gateway on loopback: models cost what they cost, and its errors pass."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, phoenix_in, with_claude
from tests.support.loopback import Talk, serve
from tests.support.loopback_agents import by_last_message, calls, says, submits
from tests.support.loopback_openai import DONE, chunk, plays, refuses, usage

ANSWER = plays([chunk({"content": "Hi."}), chunk({}, "stop"), usage(1_000_000, 0), DONE])
JSON = ("--output-format", "json")


def gateway(folder: Path, url: str) -> Phoenix:
    given = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "sk-planted-0123456789", "PHOENIX_MODEL": ""}
    return phoenix_in(folder, **given)


@pytest.mark.parametrize(("model", "dollars"), [("gpt-4o", 2.5), ("qwen2.5-coder:7b", 0.0), ("team-default", None)])
async def test_a_model_costs_the_same_wherever_its_gateway_listens(
    tmp_path: Path, model: str, dollars: float | None
) -> None:
    async with serve(ANSWER) as server:
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
    async with serve(ANSWER) as server:
        ran = await gateway(tmp_path, server.url).run("-p", "-m", "openai/team-default", "--max-budget-usd", "1", "hi")
    assert (ran.code, server.requests) == (2, [])
    assert ran.err == (
        "phoenix: The price of openai/team-default is unknown, so "
        "--max-budget-usd cannot be enforced; use --max-turns.\n"
    )


async def test_a_sub_agent_without_a_price_ends_a_run_with_a_budget(tmp_path: Path) -> None:
    answers = {
        "Sub-agent results": says("Never asked."),
        "TASK": submits("found"),
        "go": calls("spawn_agents", {"tasks": [{"task": "TASK", "profile": "odd"}]}),
    }
    async with serve(by_last_message(answers)) as server:
        phoenix = with_claude(tmp_path, server.url)
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
            await ANSWER(talk)

    async with serve(answer) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="llamacpp/some.gguf")
        (phoenix.home / "config.toml").write_text(f'[providers.llamacpp]\nbase_url = "{server.url}/v1"\n')
        ran = await phoenix.run("-p", *JSON, "hi")
    assert (ran.code, [told["contextWindow"] for told in ran.json["modelUsage"].values()]) == (0, [4_096]), ran
    with closing(sqlite3.connect(phoenix.home / "phoenix.db")) as database:
        assert database.execute("SELECT context_window FROM conversations").fetchall() == [(4_096,)]


async def test_an_error_500_of_a_gateway_on_loopback_is_tried_again(tmp_path: Path) -> None:
    async with serve(refuses(500, {"message": "upstream connect error"}), ANSWER) as server:
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
            await ANSWER(talk)

    async with serve(answer) as server:
        phoenix = phoenix_in(tmp_path, PHOENIX_MODEL="", OLLAMA_HOST=server.url.removeprefix("http://"))
        listed = await phoenix.run("models", "--json")
        ran = await phoenix.run("-p", *JSON, "-m", "ollama", "hi")
    assert "ollama/llama3.2:3b" in [model["model"] for model in listed.json]
    assert (ran.code, ran.json["model"], ran.json["total_cost_usd"]) == (0, "ollama/llama3.2:3b", 0.0)
