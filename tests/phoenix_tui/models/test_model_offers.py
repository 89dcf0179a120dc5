"""Models on offer, servers found on this machine, and the user's favourites and recent ones."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from engine.ports import ModelInfo
from engine.providers.catalogue import with_list_price
from engine.providers.events import WirePricing
from engine.providers.openai_compatible.client import OLLAMA, OpenAiCompatibleProvider
from engine.providers.openai_compatible.openai_settings import OpenAiCompatibleSettings
from phoenix_tui.models.choice import ChosenBy, ModelFacts, choose_model, needs_servers
from phoenix_tui.models.known import own_file
from phoenix_tui.models.offers import (
    CACHE_SECONDS,
    LONGEST,
    MOST_FAVOURITES,
    MOST_RECENT,
    PREFERRED_LIMIT,
    KeptLists,
    PreferredModels,
    ProviderState,
)
from phoenix_tui.models.servers import (
    Endpoint,
    LocalServer,
    ServerKind,
    discover_local_servers,
    endpoints_of,
    model_names,
    ollama_base_url,
)
from tests.phoenix_tui.wiring.test_presets import registry
from tests.support.cli import phoenix_in
from tests.support.loopback import Loopback, Talk, serve
from tests.support.program import program
from tests.support.waiting import poll

ENTRY = {
    "id": "z-ai/glm-4.7",
    "context_length": 131072,
    "pricing": {"prompt": "0.0000004", "completion": "0.00000175", "request": "0"},
    "architecture": {"input_modalities": ["text"]},
    "supported_parameters": ["tools", "reasoning", "temperature"],
}


def lists(*entries: dict[str, Any]) -> Callable[[Talk], Awaitable[None]]:
    async def answer(talk: Talk) -> None:
        await talk.plain(200, json.dumps({"data": list(entries)}).encode())

    return answer


def router(server: Loopback) -> str:
    return f'[providers.openrouter]\npreset = "openrouter"\nbase_url = "{server.url}/v1"\n'


async def test_a_server_tells_window_price_and_abilities() -> None:
    async with serve(lists(ENTRY)) as server:
        made = registry(router(server), OPENROUTER_API_KEY="k" * 9)
        (offer,) = await made.offers("openrouter")
        await made.close()
    (model,) = offer.models
    assert (offer.state, offer.words) == (ProviderState.READY, "key from OPENROUTER_API_KEY")
    assert (model.context_window, model.price_in, model.price_out) == (131_072, 0.4, 1.75)
    assert (model.vision, model.tools, model.reasoning) == (False, True, True)


@pytest.mark.parametrize("value", ["-1", "free", "nan", "inf", "1e9", None, -1.0, ""])
def test_a_price_that_is_none_stays_unknown(value: Any) -> None:
    assert WirePricing(value, value).per_million == (None, None)


def test_a_price_comes_from_the_server_then_the_list_and_is_never_guessed() -> None:
    told = ModelInfo("openrouter", "claude-sonnet-5-5", price_in=1.0, price_out=2.0)
    assert with_list_price(told) is told
    known = with_list_price(ModelInfo("anthropic", "claude-sonnet-5-5"))
    assert (known.price_in, known.price_out) == (2.0, 10.0)
    unknown = with_list_price(ModelInfo("work", "nobody-knows-this"))
    assert (unknown.price_in, unknown.price_out) == (None, None)
    assert with_list_price(ModelInfo("ollama", "qwen3:4b", local=True)).price_in == 0


async def test_without_a_key_the_variable_is_named_and_nobody_is_asked() -> None:
    offers = {one.name: one for one in await registry("").offers()}
    assert (offers["gemini"].state, offers["gemini"].words) == (ProviderState.NO_KEY, "set GEMINI_API_KEY")
    assert offers["anthropic"].words == "set ANTHROPIC_API_KEY"


async def test_a_rejected_key_is_none_and_a_silent_server_is_unreachable() -> None:
    async def refuse(talk: Talk) -> None:
        await talk.plain(401, b'{"error": {"message": "no"}}')

    async with serve(refuse) as server:
        made = registry(router(server), OPENROUTER_API_KEY="k" * 9)
        (offer,) = await made.offers("openrouter")
        await made.close()
    assert offer.state is ProviderState.NO_KEY
    assert "set OPENROUTER_API_KEY to a key that 127.0.0.1:" in offer.words
    made = registry('[providers.own]\nbase_url = "http://127.0.0.1:9/v1"\n')
    (offer,) = await made.offers("own")
    await made.close()
    assert offer.state is ProviderState.UNREACHABLE


KEPT = (ModelInfo("openrouter", "a/b", 1000, price_in=1.0, price_out=2.0),)


def test_a_list_is_kept_for_a_day_and_by_address(tmp_path: Path) -> None:
    now = [1000.0]
    path = tmp_path / "lists.json"
    KeptLists(path, lambda: now[0]).keep("openrouter", "https://x", KEPT)
    kept = KeptLists(path, lambda: now[0])
    assert kept.of("openrouter", "https://x") == KEPT
    assert kept.of("openrouter", "https://y") is None
    now[0] += CACHE_SECONDS
    assert kept.of("openrouter", "https://x") is None
    assert kept.of("openrouter", "https://x", stale=True) == KEPT
    now[0] = 0.0
    assert kept.of("openrouter", "https://x") is None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff", b'{"openrouter": 5}', b"[" * 100_000, b'{"a": {"at": "x"}}']
)
def test_a_broken_file_is_no_list_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lists.json"
    path.write_bytes(content)
    assert KeptLists(path).of("openrouter", "https://x") is None
    KeptLists(path).keep("openrouter", "https://x", KEPT)
    assert KeptLists(path).of("openrouter", "https://x") == KEPT


async def test_models_of_one_provider_are_kept_until_refreshed(tmp_path: Path) -> None:
    other = ENTRY | {"id": "z-ai/glm-5"}
    async with serve(lists(ENTRY), lists(other)) as server:
        phoenix = phoenix_in(tmp_path, OPENROUTER_API_KEY="k" * 9)
        (phoenix.home / "config.toml").write_text(router(server).replace("127.0.0.1", "127.0.0.1"))
        first = await phoenix.run("models", "--provider", "openrouter", "--json")
        second = await phoenix.run("models", "--provider", "openrouter", "--refresh", "--json")
    assert [one["model"] for one in first.json] == ["openrouter/z-ai/glm-4.7"]
    assert (first.json[0]["price_in"], first.json[0]["tools"]) == (0.4, True)
    assert [one["model"] for one in second.json] == ["openrouter/z-ai/glm-5"]
    missing = await phoenix.run("models", "--provider", "gemini")
    assert (missing.code, missing.err) == (1, "phoenix: gemini: no key: set GEMINI_API_KEY\n")
    unknown = await phoenix.run("models", "--provider", "nope")
    assert unknown.code == 2
    assert "There is no provider 'nope'. The providers are anthropic, openai," in unknown.err


async def test_a_kept_list_stands_in_for_a_service_that_is_down() -> None:
    made = registry('[providers.openrouter]\npreset = "openrouter"\nbase_url = "http://127.0.0.1:9/v1"\n')
    made.lists.keep("openrouter", "http://127.0.0.1:9/v1", KEPT)
    (offer,) = await made.offers("openrouter", refresh=True)
    await made.close()
    assert [replace(one) for one in offer.models] == list(KEPT)
    assert (offer.state, offer.words) == (ProviderState.READY, "no answer now, this is its last list")


def test_processes_and_threads_that_keep_lists_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "lists.json"
    first, second = KeptLists(path), KeptLists(path)
    assert first.of("a", "x") is None
    with ThreadPoolExecutor(8) as threads:
        tasks = [
            threads.submit(lists.keep, f"{n}-{number}", "x", KEPT)
            for n, lists in enumerate((first, second))
            for number in range(8)
        ]
        for task in tasks:
            task.result()
    found = KeptLists(path)
    assert all(found.of(f"{n}-{number}", "x") == KEPT for n in range(2) for number in range(8))


async def test_a_filter_in_the_settings_hides_models_and_says_when_it_hides_all() -> None:
    other = ENTRY | {"id": "z-ai/glm-5:free"}
    async with serve(lists(ENTRY, other), lists(ENTRY, other)) as server:
        for patterns, names, words in (
            ('["z-ai/*", "!*:free"]', ["z-ai/glm-4.7"], "key from OPENROUTER_API_KEY"),
            ('["gpt-*"]', [], "key from OPENROUTER_API_KEY, its filter in config.toml hides all 2"),
        ):
            made = registry(f"{router(server)}models = {patterns}\n", OPENROUTER_API_KEY="k" * 9)
            (offer,) = await made.offers("openrouter")
            assert ([one.name for one in offer.models], offer.words) == (names, words)
            made.lists.keep("openrouter", f"{server.url}/v1", (KEPT[0], *offer.models))
            assert [one.name for one in made.find_known_offer("openrouter").models] == names
            assert made.resolve("openrouter/z-ai/glm-5:free")[1] == "z-ai/glm-5:free", "a filter is about lists alone"
            await made.close()


@pytest.mark.parametrize("columns", [80, 120])
async def test_the_table_of_models_fits_a_terminal_and_stays_whole_in_a_pipe(tmp_path: Path, columns: int) -> None:
    long, wide = ENTRY | {"id": "x/" + "y" * 150 + "-end:free"}, ENTRY | {"id": "日本語モデル/最終版", "pricing": {}}
    async with serve(*[lists(ENTRY, long, wide)] * 2) as server:
        phoenix = phoenix_in(tmp_path, OPENROUTER_API_KEY="k" * 9)
        (phoenix.home / "config.toml").write_text(router(server))
        piped = await phoenix.run("models", "--provider", "openrouter")
        async with program(phoenix, "models", "--provider", "openrouter", rows=20, columns=columns) as running:
            await running.shows("openrouter/日本語モデル/最終版")
            head, *rows = [line for line in running.text.splitlines() if line.strip()]
    assert "y" * 150 in piped.out
    assert all(cell_len(row) <= columns for row in rows)
    assert ("NOTE" in head, "this machine" in rows[0]) == (columns == 120, columns == 120)
    assert {cell_len(row.partition("131,072")[0]) for row in rows} == {head.index("WINDOW")}
    assert "…" in rows[1]
    assert "-end:free" in rows[1]
    assert rows[2].split()[-1 if columns == 80 else -3] == "unknown"


WRITER = """
import sys
from pathlib import Path
from phoenix_tui.models.offers import PreferredModels
for number in range(10):
    PreferredModels(Path(sys.argv[1])).toggle(f"{sys.argv[2]}/{number}")
"""


def test_marks_and_choices_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "state" / "preferred.json"
    kept = PreferredModels(path)
    assert kept.read().favourites == []
    for number in range(MOST_RECENT + 3):
        kept.note_use(f"a/{number}")
    kept.note_use("a/6")
    assert kept.toggle("a/b")
    found = PreferredModels(path).read()
    assert (found.favourites, found.recent) == (["a/b"], ["a/6", "a/7", "a/5", "a/4", "a/3"])
    assert not PreferredModels(path).toggle("a/b")
    assert kept.read().favourites == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_a_file_they_are_kept_in_memory() -> None:
    kept = PreferredModels()
    assert kept.toggle("a/b")
    kept.note_use("c/d")
    assert (kept.read().favourites, kept.read().recent) == (["a/b"], ["c/d"])


def test_two_processes_lose_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "preferred.json"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("one", "two")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert set(PreferredModels(path).read().favourites) == {f"{name}/{n}" for name in ("one", "two") for n in range(10)}


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{",
        '{"favourites": 5}',
        "[" * 100_000,
        '{"favourites": ["' + "x" * PREFERRED_LIMIT + '"]}',
        json.dumps({"recent": ["a/" + "x" * LONGEST, "no-slash", "a/\x1b[31m", "a/\u202e", ""], "favourites": []}),
        "\udcff",
    ],
)
def test_a_broken_file_has_none_and_the_next_mark_repairs_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "preferred.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    kept = PreferredModels(path)
    assert (kept.read().favourites, kept.read().recent) == ([], [])
    kept.toggle("a/b")
    assert PreferredModels(path).read().favourites == ["a/b"]


def test_the_oldest_favourite_makes_room(tmp_path: Path) -> None:
    path = tmp_path / "preferred.json"
    path.write_text(json.dumps({"favourites": [f"a/{n}" for n in range(MOST_FAVOURITES)]}))
    PreferredModels(path).toggle("b/new")
    assert PreferredModels(path).read().favourites == [*(f"a/{n}" for n in range(1, MOST_FAVOURITES)), "b/new"]


def test_a_folder_in_the_place_of_the_file_is_reported_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "preferred.json").mkdir()
    kept = PreferredModels(tmp_path / "preferred.json")
    assert kept.read().favourites == []
    with pytest.raises(OSError, match="directory"):
        kept.toggle("a/b")


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
