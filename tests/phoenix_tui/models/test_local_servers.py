"""Servers of this machine, and the choice of a model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.providers.openai_compatible.client import OLLAMA, OpenAiCompatibleProvider
from engine.providers.openai_compatible.openai_settings import OpenAiCompatibleSettings
from phoenix_tui.models.choice import ChosenBy, ModelFacts, choose_model, needs_servers
from phoenix_tui.models.known import own_file
from phoenix_tui.models.servers import (
    Endpoint,
    LocalServer,
    ServerKind,
    discover_local_servers,
    endpoints_of,
    model_names,
    ollama_base_url,
)
from tests.support.loopback import Loopback, Talk, serve
from tests.support.waiting import poll

LIMIT = 1.5
"""Seconds for all servers together."""


def port_of(loopback: Loopback) -> int:
    return int(loopback.url.rpartition(":")[2])


async def lists_models(talk: Talk) -> None:
    await talk.plain(200, b'{"object":"list","data":[{"id":"qwen:7b","owned_by":"x"},{"id":"tiny"}]}')


async def lists_nothing(talk: Talk) -> None:
    await talk.plain(200, b'{"object":"list","data":[]}')


async def is_something_else(talk: Talk) -> None:
    await talk.plain(200, b"<html>a web page</html>")


async def stalls(talk: Talk) -> None:
    await talk.stall()


async def in_chunks(talk: Talk) -> None:
    await talk.begin("application/json")
    await talk.send(b'{"data":[{"id":', b'"a"}]}')
    await talk.end()


async def test_servers_with_a_model_are_found_in_order() -> None:
    async with serve(lists_models) as first, serve(in_chunks) as second:
        endpoints = (Endpoint(ServerKind.OLLAMA, port_of(first)), Endpoint(ServerKind.VLLM, port_of(second)))
        found = await discover_local_servers(5.0, endpoints)
    assert found == (
        LocalServer(ServerKind.OLLAMA, f"{first.url}/v1", ("qwen:7b", "tiny")),
        LocalServer(ServerKind.VLLM, f"{second.url}/v1", ("a",)),
    )
    assert found[0].reference == "ollama/qwen:7b"
    assert first.requests[0].path == "/v1/models"


async def test_servers_without_a_model_and_other_services_are_not_found() -> None:
    async with serve(lists_nothing) as empty, serve(is_something_else) as page:
        endpoints = (Endpoint(ServerKind.OLLAMA, port_of(empty)), Endpoint(ServerKind.VLLM, port_of(page)))
        assert await discover_local_servers(5.0, endpoints) == ()


async def lists_tags(talk: Talk) -> None:
    if talk.seen.path == "/api/tags":
        await talk.plain(200, b'{"models":[{"name":"llama3.2:3b","size":1},{"name":"tiny"}]}')
    else:
        await talk.plain(404, b"404 page not found")


async def test_an_ollama_that_has_only_a_list_of_its_own_is_found() -> None:
    async with serve(lists_tags) as first:
        found = await discover_local_servers(5.0, (Endpoint(ServerKind.OLLAMA, port_of(first)),))
        provider = OpenAiCompatibleProvider(OpenAiCompatibleSettings(OLLAMA, f"{first.url}/v1", key_variable=""))
        listed = await provider.models()
        await provider.close()
    assert found == (LocalServer(ServerKind.OLLAMA, f"{first.url}/v1", ("llama3.2:3b", "tiny")),)
    assert [model.reference for model in listed] == ["ollama/llama3.2:3b", "ollama/tiny"]


@pytest.mark.parametrize(
    ("value", "address", "looked_for"),
    [
        ("", "http://127.0.0.1:11434/v1", True),
        ("0.0.0.0", "http://127.0.0.1:11434/v1", True),
        (":11500", "http://127.0.0.1:11500/v1", True),
        ("localhost:11500", "http://localhost:11500/v1", True),
        ("http://127.0.0.1:11500/", "http://127.0.0.1:11500/v1", True),
        ("http://127.0.0.1", "http://127.0.0.1:80/v1", True),
        ("[::1]:11500", "http://[::1]:11500/v1", True),
        ("::", "http://[::1]:11434/v1", True),
        ("box.lan", "http://box.lan:11434/v1", False),
        ("https://box.lan/ollama", "https://box.lan:443/ollama/v1", False),
        ("http://127.0.0.1:99999", "http://127.0.0.1:11434/v1", True),
        ("http://a b:1", "http://127.0.0.1:11434/v1", True),
        ("ftp://box", "http://127.0.0.1:11434/v1", True),
        ('"127.0.0.1:11500"', "http://127.0.0.1:11500/v1", True),
        ("x\r\nHost: evil", "http://127.0.0.1:11434/v1", True),
    ],
)
def test_ollama_is_where_its_variable_says(value: str, address: str, looked_for: bool) -> None:
    environment = {"OLLAMA_HOST": value}
    assert ollama_base_url(environment) == address
    looked = [one.base_url for one in endpoints_of(environment) if one.kind is ServerKind.OLLAMA]
    assert looked == ([address] if looked_for else [])


@given(st.text(max_size=40))
def test_no_variable_makes_the_search_crash(value: str) -> None:
    assert ollama_base_url({"OLLAMA_HOST": value}).startswith("http")
    assert endpoints_of({"OLLAMA_HOST": value})


async def test_silent_ports_are_asked_beside_each_other_and_given_up_at_the_limit() -> None:
    async with serve(stalls) as silent, serve(lists_models) as quick:
        ports = [port_of(silent)] * 3
        endpoints = [
            *(Endpoint(ServerKind.LLAMA_CPP, port) for port in ports),
            Endpoint(ServerKind.VLLM, port_of(quick)),
        ]
        asked = asyncio.create_task(discover_local_servers(LIMIT, endpoints))
        assert await poll(lambda: silent.open == 3), "all at once"
        found = await asked
        await silent.wait_closed()
    assert [server.kind for server in found] == [ServerKind.VLLM]


async def test_nobody_there_is_known_at_once() -> None:
    unused = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = unused.sockets[0].getsockname()[1]
    unused.close()
    await unused.wait_closed()
    assert await discover_local_servers(5.0, (Endpoint(ServerKind.OLLAMA, port),)) == ()


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=80).map(lambda tail: b"HTTP/1.1 200 OK\r\n\r\n" + tail)))
def test_no_answer_makes_the_search_crash(answer: bytes) -> None:
    assert isinstance(model_names(answer), tuple)


def test_only_status_200_counts() -> None:
    body = b'\r\n\r\n{"data":[{"id":"a"}]}'
    assert model_names(b"HTTP/1.1 200 OK" + body) == ("a",)
    assert model_names(b"HTTP/1.1 401 No" + body) == ()


EVERYTHING = ModelFacts(
    flag="openai/gpt-5",
    conversation="anthropic/claude-haiku-5-5",
    environment="ollama/a",
    config="ollama/b",
    has_anthropic_key=True,
    has_openai=True,
    servers=(LocalServer(ServerKind.OLLAMA, "http://127.0.0.1:11434/v1", ("qwen:7b", "x")),),
    embedded=("qwen2.5-coder-1.5b",),
)
ORDER = [
    ("flag", "", "openai/gpt-5", ChosenBy.FLAG),
    ("conversation", "", "anthropic/claude-haiku-5-5", ChosenBy.CONVERSATION),
    ("environment", "", "ollama/a", ChosenBy.ENVIRONMENT),
    ("config", "", "ollama/b", ChosenBy.CONFIG),
    ("has_anthropic_key", False, "anthropic/claude-sonnet-5-5", ChosenBy.ANTHROPIC_KEY),
    ("has_openai", False, "openai", ChosenBy.OPENAI_KEY),
    ("servers", (), "ollama/qwen:7b", ChosenBy.LOCAL_SERVER),
    ("embedded", (), "local/qwen2.5-coder-1.5b", ChosenBy.EMBEDDED),
]


def test_each_fact_decides_when_all_before_it_are_missing() -> None:
    facts = EVERYTHING
    for name, missing, reference, chosen_by in ORDER:
        choice = choose_model(facts)
        assert (choice.reference, choice.chosen_by) == (reference, chosen_by)
        facts = replace(facts, **{name: missing})
    assert choose_model(facts).is_guide


def test_servers_are_only_looked_for_when_they_could_matter() -> None:
    assert needs_servers(ModelFacts())
    assert not needs_servers(ModelFacts(config="ollama/b"))
    assert not needs_servers(ModelFacts(has_anthropic_key=True))


@pytest.mark.parametrize(
    "facts", [replace(ModelFacts(), servers=EVERYTHING.servers), ModelFacts(embedded=("a",)), ModelFacts()]
)
def test_a_fallback_is_said_aloud(facts: ModelFacts) -> None:
    choice = choose_model(facts)
    assert choice.sentence.endswith(".")
    assert choice.reference.split("/")[1] in choice.sentence


def test_a_model_somebody_named_needs_no_word() -> None:
    assert choose_model(EVERYTHING).sentence == ""
    assert choose_model(ModelFacts(flag="  anthropic ")).reference == "anthropic/claude-sonnet-5-5"


def test_the_own_file_is_named_by_the_environment(tmp_path: Path) -> None:
    assert own_file({"PHOENIX_GGUF": f" {tmp_path}/b.gguf "}) == tmp_path / "b.gguf"
    assert own_file({"PHOENIX_GGUF": "~/b.gguf"}) == Path.home() / "b.gguf"
    assert own_file({"PHOENIX_GGUF": ""}) is None
    assert own_file({}) is None
