"""`[providers.NAME]` from the file to the wire: limits, headers, parts of the address, fields of the body."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, phoenix_in
from tests.support.loopback import Loopback, Talk, serve
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
