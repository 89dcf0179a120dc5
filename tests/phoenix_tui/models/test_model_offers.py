"""Models on offer, and the user's favourites and recent ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from engine.ports import ModelInfo
from engine.providers.catalogue import with_list_price
from engine.providers.events import WirePricing
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
from tests.phoenix_tui.wiring.test_provider_registry import registry
from tests.support.cli import phoenix_in
from tests.support.loopback import Loopback, Talk, serve
from tests.support.program import program

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
