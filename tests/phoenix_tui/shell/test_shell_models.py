"""The sheet of models: its keys, its filter, and providers that answer later or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.ports import ModelInfo
from phoenix_tui.commands.settings import run_model
from phoenix_tui.modals.model_sheet import ModelSheet
from phoenix_tui.models.offers import ProviderOffer, ProviderState
from phoenix_tui.widgets.line_input import LineInput
from tests.support.fake_engine import FakeOnboarding
from tests.support.fake_models import MODELS, FakeModels

CLAUDE = "anthropic/claude-sonnet-5-5"
GLM = ModelInfo("openrouter", "z-ai/glm-4.7", 131_072, vision=False, price_in=0.4, price_out=1.75)
NO_KEY = ProviderOffer("gemini", ProviderState.NO_KEY, "set GEMINI_API_KEY")
DOWN = ProviderOffer("work", ProviderState.UNREACHABLE, "Could not reach gateway.example.")


async def opened(shell: Any) -> ModelSheet:
    await shell.type("/model")
    await shell.pilot.press("enter")
    await shell.until(lambda: isinstance(shell.top, ModelSheet))
    sheet = shell.top
    assert isinstance(sheet, ModelSheet)
    return sheet


def chosen(shell: Any) -> str:
    sheet = shell.top
    assert isinstance(sheet, ModelSheet)
    row = sheet._models.row
    return "" if row is None else row.key or row.name


async def test_enter_uses_a_model_here_and_remembers_the_choice(open_shell: Any) -> None:
    models = FakeModels()
    async with open_shell(model="demo/guide", models=models) as shell:
        await opened(shell)
        assert chosen(shell) == "demo/guide"
        await shell.pilot.press("down", "enter")
        await shell.until(lambda: shell.top is shell.screen)
        assert shell.active.model == CLAUDE
        assert models.preferred.read().recent == [CLAUDE, "demo/guide"]
        assert shell.settings == []


async def test_a_star_marks_a_model_and_keeps_it_chosen(open_shell: Any) -> None:
    models = FakeModels()
    async with open_shell(model="demo/guide", models=models) as shell:
        await opened(shell)
        await shell.pilot.press("down", "asterisk")
        await shell.until(lambda: "Favourites" in shell.text)
        assert models.preferred.read().favourites == [CLAUDE]
        assert chosen(shell) == CLAUDE
        assert "› claude-sonnet-5-5 *" in shell.text
        await shell.pilot.press("asterisk")
        await shell.until(lambda: "Favourites" not in shell.text)
        assert models.preferred.read().favourites == []


async def test_a_mark_that_cannot_be_kept_says_why(open_shell: Any) -> None:
    models = FakeModels((ModelInfo("anthropic", "evil\x1b[31m"), *MODELS))
    async with open_shell(model="demo/guide", models=models) as shell:
        await opened(shell)
        await shell.pilot.press("down", "asterisk")
        await shell.until(lambda: "A model with such a name cannot be a favourite." in shell.text)
        assert models.preferred.read().favourites == []


async def test_d_makes_a_model_the_default_too(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await opened(shell)
        await shell.pilot.press("down", "d")
        await shell.until(lambda: ("model", CLAUDE) in shell.settings)
        assert shell.active.model == CLAUDE


async def test_e_chooses_the_effort_of_a_model_that_is_used_then(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await opened(shell)
        await shell.pilot.press("down", "e")
        await shell.until(lambda: "Effort of claude-sonnet-5-5" in shell.text)
        assert shell.active.model == CLAUDE


async def test_letters_behind_the_slash_narrow_and_escape_shows_all_again(open_shell: Any) -> None:
    async with open_shell(model="demo/guide", models=FakeModels((*MODELS, GLM))) as shell:
        sheet = await opened(shell)
        await shell.pilot.press("slash", *"glm")
        await shell.until(lambda: "1 / 1" in shell.text and chosen(shell) == GLM.reference)
        await shell.pilot.press("escape")
        await shell.until(lambda: "/ 4" in shell.text)
        assert (shell.top, chosen(shell)) == (sheet, GLM.reference)
        await shell.pilot.press("escape")
        await shell.until(lambda: shell.top is shell.screen)


async def test_tab_leaves_the_filter_so_that_letters_act_on_what_it_found(open_shell: Any) -> None:
    models = FakeModels((*MODELS, GLM))
    async with open_shell(model="demo/guide", models=models) as shell:
        sheet = await opened(shell)
        await shell.pilot.press("slash", *"glm", "tab")
        await shell.until(lambda: not sheet.query_one(LineInput).has_focus)
        assert "1 / 1" in shell.text
        await shell.pilot.press("asterisk")
        await shell.until(lambda: models.preferred.read().favourites == [GLM.reference])
        await shell.pilot.press("tab", *"-4")
        await shell.until(lambda: sheet.query_one(LineInput).text == "glm-4")


async def test_a_word_behind_the_command_opens_the_list_narrowed(open_shell: Any) -> None:
    async with open_shell(model="demo/guide", models=FakeModels((*MODELS, GLM))) as shell:
        shell.app.run_worker(run_model(shell.ctx, "glm 131"))
        await shell.until(lambda: "0   Enter" in shell.text)
        assert "No model has these words. PROVIDER/MODEL is used as typed." in shell.text
        await shell.pilot.press(*["backspace"] * 4)
        await shell.until(lambda: "1 / 1" in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.active.model == GLM.reference)


async def test_a_reference_that_no_list_has_is_used_as_typed(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await opened(shell)
        await shell.pilot.press("slash", *"own/model")
        await shell.until(lambda: "Enter uses it as typed." in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.active.model == "own/model")


async def test_a_provider_without_a_key_asks_for_one_and_then_shows_its_models(open_shell: Any) -> None:
    models, onboarding = FakeModels(), FakeOnboarding()
    models.closed = (NO_KEY,)
    async with open_shell(model="demo/guide", models=models, onboarding=onboarding) as shell:
        await opened(shell)
        await shell.pilot.press("down", "down", "down")
        await shell.until(lambda: "› gemini: set GEMINI_API_KEY" in shell.text)
        assert "Enter stores a key" in shell.text
        await shell.pilot.press("d", "enter")
        await shell.until(lambda: "Paste an API key of gemini" in shell.text)
        await shell.pilot.press(*"secret-key-1", "enter")
        await shell.until(lambda: isinstance(shell.top, ModelSheet))
        assert onboarding.keys == [("gemini", "secret-key-1")]
        assert shell.top.query_one(LineInput).text == "gemini"


async def test_what_a_provider_answers_appears_without_moving_the_choice(open_shell: Any) -> None:
    models = FakeModels()
    models.closed = (ProviderOffer("openrouter", ProviderState.ASKING),)
    models.later = (ProviderOffer("openrouter", ProviderState.READY, "", (GLM,)), DOWN)
    async with open_shell(model=CLAUDE, models=models) as shell:
        await opened(shell)
        await shell.until(lambda: "z-ai/glm-4.7" in shell.text and "asking" not in shell.text)
        assert chosen(shell) == CLAUDE
        await shell.pilot.press("slash", *"gateway")
        await shell.until(lambda: "› work: Could not reach gateway.example." in shell.text)
        await shell.pilot.press("enter")
        await shell.until(lambda: models.refreshed == [False, True])
        assert isinstance(shell.top, ModelSheet)


async def test_r_asks_the_providers_again(open_shell: Any) -> None:
    models = FakeModels()
    async with open_shell(model="demo/guide", models=models) as shell:
        await opened(shell)
        await shell.pilot.press("r")
        await shell.until(lambda: models.refreshed == [False, True])


async def test_another_model_in_a_conversation_says_what_the_lost_cache_costs(open_shell: Any) -> None:
    async with open_shell(model="demo/guide", models=FakeModels((*MODELS, GLM))) as shell:
        conversation = await shell.say("go")
        conversation.record = replace(conversation.record, context_tokens=84_000, message_count=2)
        await opened(shell)
        await shell.pilot.press("slash", *"glm")
        await shell.until(lambda: "it reads 84k tokens anew, about $0.03" in " ".join(shell.text.split()))
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.toasts)
        assert shell.toasts == [
            "z-ai/glm-4.7: its cache lacks this conversation: it reads 84k tokens anew, about $0.03. "
            "It cannot see images: 1 here is left out once refused."
        ]


async def test_a_key_goes_back_to_the_model_before_and_returns(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await shell.pilot.press("alt+m")
        await shell.until(lambda: shell.toasts == ["No other model was chosen before. /model lists all."])
        await shell.type(f"/model {CLAUDE}")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.active.model == CLAUDE)
        await shell.pilot.press("alt+m")
        await shell.until(lambda: shell.active.model == "demo/guide")
        await shell.pilot.press("alt+m")
        await shell.until(lambda: shell.active.model == CLAUDE)


async def test_star_and_default_behind_a_reference_need_no_list(open_shell: Any) -> None:
    models = FakeModels()
    async with open_shell(model="demo/guide", models=models) as shell:
        await shell.type(f"/model {CLAUDE} *")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.toasts == [f"{CLAUDE} is a favourite now."])
        assert shell.active.model == "demo/guide"
        await shell.type(f"/model {CLAUDE} default")
        await shell.pilot.press("enter")
        await shell.until(lambda: shell.settings == [("model", CLAUDE)])
        assert models.preferred.read().favourites == [CLAUDE]


@pytest.mark.parametrize("size", [(200, 60), (20, 6)])
async def test_ten_thousand_models_are_shown_on_any_screen(open_shell: Any, size: tuple[int, int]) -> None:
    many = tuple(ModelInfo("openrouter", f"maker/model-{number}", 131_072) for number in range(10_000))
    async with open_shell(model="demo/guide", size=size, models=FakeModels(many)) as shell:
        await opened(shell)
        await shell.pilot.press(*["pagedown"] * 3, *["up"] * 3, "down")
        await shell.pilot.press("slash", *"model-7777")
        await shell.until(lambda: chosen(shell) == "openrouter/maker/model-7777")
