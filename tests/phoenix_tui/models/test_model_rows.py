"""Rows of the list of models: sections, filter, columns, and what a change costs."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from engine.ports import ModelInfo
from phoenix_tui.features.model import ModelRow, all_rows, change_text, list_preferred, narrow_rows, provider_rows
from phoenix_tui.markdown.lines import cut_middle
from phoenix_tui.modals.model_sheet import ModelLines, detail
from phoenix_tui.models.offers import Preferred, ProviderOffer, ProviderState
from phoenix_tui.text.model_text import facts_line, price_text, window_text

GLM = ModelInfo("openrouter", "z-ai/glm-4.7", 131_072, vision=False, tools=True, price_in=0.4, price_out=1.75)
CLAUDE = ModelInfo("anthropic", "claude-sonnet-5-5", 1_000_000, 64_000, vision=True, reasoning=True)
HOSTILE = (
    "evil\x1b[31m\x1b]52;c;QUFB\x07\u202egnp.exe",
    "z-ai/" + "x" * 300 + "-end:free",
    "日本語モデル/大規模言語モデル-超長い名前のモデル-最終版-v2",
    "نموذج/عربي-كبير",
    "👩\u200d👩\u200d👧\u200d👦/family",
    "e\u0301" * 60,
    "line\nbreak\tand tab",
)
OFFERS = (
    ProviderOffer("anthropic", ProviderState.READY, "key from ANTHROPIC_API_KEY", (CLAUDE,)),
    ProviderOffer("gemini", ProviderState.NO_KEY, "set GEMINI_API_KEY"),
    ProviderOffer("openrouter", ProviderState.READY, "", (GLM,)),
    ProviderOffer("work", ProviderState.UNREACHABLE, "Could not reach gateway.example."),
    ProviderOffer("ollama", ProviderState.UNREACHABLE, "Could not reach 127.0.0.1:11434.", is_expected=False),
    ProviderOffer("vllm", ProviderState.ASKING, is_expected=False),
    ProviderOffer("groq", ProviderState.READY, "its filter in config.toml hides all 12"),
    ProviderOffer("mistral", ProviderState.ASKING),
)
PREFERRED = Preferred([GLM.reference, "gone/model"], ["a/b", GLM.reference])


def rows() -> list[ModelRow]:
    known = {one.reference: one for one in (GLM, CLAUDE)}
    return all_rows(map(provider_rows, OFFERS), list_preferred(PREFERRED, CLAUDE.reference, known))


def test_favourites_come_first_then_recent_ones_then_providers_and_last_those_without_models() -> None:
    assert [(row.section, row.key or row.name) for row in rows()] == [
        ("Favourites", "openrouter/z-ai/glm-4.7"),
        ("Favourites", "gone/model"),
        ("Recent", "anthropic/claude-sonnet-5-5"),
        ("Recent", "a/b"),
        ("anthropic · key from ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5-5"),
        ("openrouter", "openrouter/z-ai/glm-4.7"),
        ("Asking for models …", "mistral"),
        ("Without models", "groq: its filter in config.toml hides all 12"),
        ("Unreachable", "work: Could not reach gateway.example."),
        ("Without a key", "gemini: set GEMINI_API_KEY"),
    ]


def test_a_filter_finds_rows_with_every_word_and_each_model_once() -> None:
    assert [row.key for row in narrow_rows(rows(), "GLM tools")] == [GLM.reference]
    assert [row.section for row in narrow_rows(rows(), "glm")] == ["Favourites"]
    assert [(row.section, row.key) for row in narrow_rows(rows(), "l")][:4] == [
        ("Favourites", GLM.reference),
        ("Favourites", "gone/model"),
        ("Recent", CLAUDE.reference),
        ("Asking for models …", ""),
    ]
    assert narrow_rows(rows(), "glm vision") == []
    assert [row.key for row in narrow_rows(rows(), "image")] == [CLAUDE.reference]
    assert [row.name for row in narrow_rows(rows(), "no key")] == ["gemini: set GEMINI_API_KEY"]
    assert narrow_rows(rows(), "  ") == rows()


def test_the_same_name_at_two_providers_stays_two_rows() -> None:
    both = [provider_rows(ProviderOffer(name, ProviderState.READY, "", (ModelInfo(name, "m"),))) for name in "ab"]
    assert [row.key for row in narrow_rows(all_rows(both, []), "m")] == ["a/m", "b/m"]


def test_what_is_unknown_is_named_as_unknown() -> None:
    unknown = ModelInfo("own", "m")
    assert (price_text(unknown), window_text(unknown)) == ("", "unknown")
    assert facts_line(unknown) == ("window unknown", "price unknown")
    assert facts_line(GLM) == ("window 131k", "$0.4/1.75 per million tokens", "no images", "tools")
    guessed = ModelInfo("own", "m", 32_768, note="context window estimated")
    assert window_text(guessed) == "~33k"


@pytest.mark.parametrize(
    ("price", "text"),
    [((0.0, 0.0), "free"), ((0.0375, 0.15), "0.0375/0.15"), ((1e-7, 12_345.6), "<0.001/12,346"), ((0.0, 2.0), "0/2")],
)
def test_a_price_is_short_whatever_it_is(price: tuple[float, float], text: str) -> None:
    assert price_text(ModelInfo("a", "b", price_in=price[0], price_out=price[1])) == text


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("cells", [118, 78, 58, 38, 20, 5, 1])
def test_every_line_keeps_its_width_and_nothing_hostile_is_in_it(name: str, cells: int) -> None:
    infos = [ModelInfo("openrouter", name, 131_072, price_in=0.0375, price_out=0.15), GLM]
    shown = all_rows([provider_rows(ProviderOffer("openrouter", ProviderState.READY, "", tuple(infos)))], [])
    for chosen in (0, 1):
        drawn = ModelLines(cells, infos[0].reference, [infos[0].reference]).window(shown, chosen, 10).plain
        assert all(cell_len(line) <= cells for line in drawn.split("\n"))
        assert not {"\x1b", "\x07", "\u202e", "\t"} & set(drawn)
        assert drawn.count("\n") == 2
    assert not {"\x1b", "\x07", "\u202e", "\t", "\n"} & set(detail(shown[0], ""))


@pytest.mark.parametrize("cells", [118, 78, 72])
def test_columns_stand_below_each_other_beside_wide_characters(cells: int) -> None:
    infos = [ModelInfo("openrouter", name, 131_072, vision=True, price_in=0.4, price_out=2) for name in HOSTILE[:4]]
    shown = provider_rows(ProviderOffer("openrouter", ProviderState.READY, "", tuple(infos)))
    _, *lines = ModelLines(cells, "", []).window(shown, 3, 10).plain.split("\n")
    assert {cell_len(line.partition("131k")[0]) for line in lines} == {cell_len(lines[0].partition("131k")[0])}
    assert {cell_len(line.partition("0.4/2")[0]) for line in lines} == {cell_len(lines[0].partition("0.4/2")[0])}


def test_the_middle_of_a_long_name_goes_since_names_differ_at_their_ends() -> None:
    assert cut_middle("meta-llama/llama-3.1-405b-instruct:free", 20) == "meta-lla…struct:free"
    assert cut_middle("short", 5) == "short"
    assert [cell_len(cut_middle("日本語モデル", cells)) <= cells for cells in range(13)] == [True] * 13


@pytest.mark.parametrize("room", [3, 4, 9])
def test_the_chosen_row_is_in_sight_among_many_sections(room: int) -> None:
    groups = [
        provider_rows(ProviderOffer(f"p{n}", ProviderState.READY, "", (ModelInfo(f"p{n}", f"model-{n}"),)))
        for n in range(12)
    ]
    shown = all_rows(groups, [])
    for chosen in range(12):
        lines = ModelLines(60, "", []).window(shown, chosen, room).plain.split("\n")
        assert len(lines) <= room
        assert sum(line.startswith(f"› model-{chosen} ") for line in lines) == 1


def test_another_model_names_what_the_lost_cache_costs_and_what_it_cannot_take() -> None:
    assert change_text(CLAUDE, 84_000) == (
        "Its cache lacks this conversation: it reads 84k tokens anew, at an unknown price."
    )
    assert change_text(GLM, 200_000, 2) == (
        "Its cache lacks this conversation: it reads 200k tokens anew, about $0.08. "
        "Its window is smaller (131k): /compact first. "
        "It cannot see images: 2 here are left out once refused."
    )
    free = ModelInfo("local", "small", 8_000, price_in=0.0, price_out=0.0)
    assert change_text(free, 4_000).endswith("it reads 4.0k tokens anew.")
