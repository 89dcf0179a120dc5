"""The list of models: sections, filter, and what its keys do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.ports import ModelInfo
from phoenix_tui.features.model_rows import model_rows, narrowed
from phoenix_tui.modals.model_sheet import ModelSheet
from phoenix_tui.models.offers import ProviderOffer, ProviderState
from phoenix_tui.models.shelf import MOST_RECENT, ModelShelf

GLM = ModelInfo("openrouter", "z-ai/glm-4.7", 131_072, vision=False, tools=True, price_in=0.4, price_out=1.75)
CLAUDE = ModelInfo("anthropic", "claude-sonnet-5-5", 1_000_000, vision=True)
OFFERS = (
    ProviderOffer("anthropic", ProviderState.READY, "key from ANTHROPIC_API_KEY", (CLAUDE,)),
    ProviderOffer("openrouter", ProviderState.READY, "", (GLM,)),
    ProviderOffer("gemini", ProviderState.NO_KEY, "set GEMINI_API_KEY"),
    ProviderOffer("work", ProviderState.UNREACHABLE, "Could not reach gateway.example."),
    ProviderOffer("ollama", ProviderState.UNREACHABLE, "Could not reach 127.0.0.1:11434."),
)


def test_rows_are_grouped_and_name_the_state_of_each_provider() -> None:
    rows = model_rows(OFFERS, [GLM.reference, "gone/model"], ["a/b", GLM.reference], CLAUDE.reference)
    assert [(row.section, row.key) for row in rows] == [
        ("In use", "anthropic/claude-sonnet-5-5"),
        ("Favourites", "openrouter/z-ai/glm-4.7"),
        ("Favourites", "gone/model"),
        ("Recent", "a/b"),
        ("openrouter", "openrouter/z-ai/glm-4.7"),
        ("Without a key", "key gemini"),
        ("Unreachable", "key work"),
    ]
    assert rows[1].facts.split() == ["131k", "$0.4/1.75", "tools"]
    assert rows[0].facts.split() == ["1.0M", "vision"]
    assert rows[-2].facts == "no key: set GEMINI_API_KEY"


def test_a_filter_finds_every_word_and_each_model_once() -> None:
    rows = model_rows(OFFERS, [GLM.reference], [], CLAUDE.reference)
    assert [row.key for row in narrowed(rows, "GLM tools")] == [GLM.reference]
    assert narrowed(rows, "glm vision") == []
    assert narrowed(rows, "  ") == rows


def test_marks_and_choices_survive_in_a_file_that_may_be_broken(tmp_path: Path) -> None:
    shelf = ModelShelf(tmp_path / "chosen.json")
    for number in range(MOST_RECENT + 3):
        shelf.used(f"a/{number}")
    shelf.used("a/6")
    assert shelf.toggle("a/b")
    other = ModelShelf(tmp_path / "chosen.json")
    assert (other.favourites(), other.recent()) == (["a/b"], ["a/6", "a/7", "a/5", "a/4", "a/3"])
    assert not other.toggle("a/b")
    assert shelf.favourites() == []
    for content in ("[]", "{", '{"favourites": 5}', "[" * 100_000, json.dumps({"recent": ["x" * 10_000]})):
        (tmp_path / "chosen.json").write_text(content)
        assert (shelf.favourites(), shelf.recent()) == ([], [])


async def opened(shell: Any) -> ModelSheet:
    await shell.type("/model")
    await shell.pilot.press("enter")
    await shell.until(lambda: isinstance(shell.top, ModelSheet))
    return shell.top


async def test_a_star_marks_a_model_and_keeps_it_chosen(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await opened(shell)
        await shell.pilot.press("down", "asterisk")
        await shell.until(lambda: "Favourites" in shell.text)
        assert shell.ctx.active.services.system.shelf.favourites() == ["anthropic/claude-sonnet-5-5"]
        await shell.pilot.press("asterisk")
        await shell.until(lambda: "Favourites" not in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.top is shell.screen)
        assert shell.ctx.active.model == "anthropic/claude-sonnet-5-5"
        assert shell.ctx.active.services.system.shelf.recent() == ["anthropic/claude-sonnet-5-5"]


async def test_d_makes_a_model_the_default_too(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await opened(shell)
        await shell.pilot.press("down", "d")
        await shell.until(lambda: ("model", "anthropic/claude-sonnet-5-5") in shell.ctx.active.services.settings.kept)
        assert shell.ctx.active.model == "anthropic/claude-sonnet-5-5"


async def test_the_filter_takes_letters_and_escape_ends_it_before_the_sheet(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        sheet = await opened(shell)
        await shell.pilot.press("slash", *"sonnet")
        await shell.until(lambda: "1 / 1" in shell.text)
        await shell.pilot.press("escape")
        await shell.until(lambda: "1 / 2" in shell.text)
        assert shell.top is sheet
        await shell.pilot.press("slash", *"own/model", "enter")
        await shell.until(lambda: shell.ctx.active.model == "own/model")


async def test_a_provider_without_a_key_asks_for_one(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        shell.ctx.active.services.system.closed = (OFFERS[2],)
        await opened(shell)
        await shell.pilot.press("down", "down")
        await shell.until(lambda: "no key: set GEMINI_API_KEY" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: "Paste an API key of gemini" in shell.text)
        await shell.pilot.press(*"secret-key-1", "enter")
        await shell.until(lambda: shell.ctx.active.services.onboarding.keys == [("gemini", "secret-key-1")])


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (20, 6)])
async def test_a_thousand_models_are_shown_on_any_screen(open_shell: Any, size: tuple[int, int]) -> None:
    async with open_shell(model="demo/guide", size=size) as shell:
        many = tuple(ModelInfo("openrouter", f"maker/model-{number}", 131_072) for number in range(1_000))
        shell.ctx.active.services.system.offered = many
        await opened(shell)
        await shell.pilot.press(*["pagedown"] * 3, *["up"] * 3, "down")
        await shell.pilot.press("slash", *"model-777")
        await shell.until(lambda: shell.top.chosen.key == "openrouter/maker/model-777")
