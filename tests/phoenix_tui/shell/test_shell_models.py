"""Models and effort: chosen, changed, marked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.ports import ConversationChanges, ModelInfo
from engine.run_options import Effort
from phoenix_tui.commands.settings import run_model
from phoenix_tui.modals.model_sheet import ModelSheet
from phoenix_tui.modals.rows_sheet import PickerSheet
from phoenix_tui.models.offers import ProviderOffer, ProviderState
from phoenix_tui.widgets.line_input import LineInput
from tests.support.fake_engine import FakeEngine, FakeOnboarding
from tests.support.fake_models import MODELS, FakeModels

CLAUDE = "anthropic/claude-sonnet-5-5"
GLM = ModelInfo("openrouter", "z-ai/glm-4.7", 131_072, vision=False, price_in=0.4, price_out=1.75)
NO_KEY = ProviderOffer("gemini", ProviderState.NO_KEY, "set GEMINI_API_KEY")
DOWN = ProviderOffer("work", ProviderState.UNREACHABLE, "Could not reach gateway.example.")


async def opened(shell: Any) -> ModelSheet:
    await shell.enter("/model", until=lambda: isinstance(shell.top, ModelSheet))
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
        await shell.press("down", "enter", until=lambda: shell.top is shell.screen)
        assert shell.active.model == CLAUDE
        assert models.preferred.read().recent == [CLAUDE, "demo/guide"]
        assert shell.settings == []


async def test_a_star_marks_a_model_and_keeps_it_chosen(open_shell: Any) -> None:
    models = FakeModels()
    async with open_shell(model="demo/guide", models=models) as shell:
        await opened(shell)
        await shell.press("down", "asterisk", shows="Favourites")
        assert models.preferred.read().favourites == [CLAUDE]
        assert chosen(shell) == CLAUDE
        assert "› claude-sonnet-5-5 *" in shell.text
        await shell.press("asterisk", until=lambda: "Favourites" not in shell.text)
        assert models.preferred.read().favourites == []


async def test_a_mark_that_cannot_be_kept_says_why(open_shell: Any) -> None:
    models = FakeModels((ModelInfo("anthropic", "evil\x1b[31m"), *MODELS))
    async with open_shell(model="demo/guide", models=models) as shell:
        await opened(shell)
        await shell.press("down", "asterisk", shows="A model with such a name cannot be a favourite.")
        assert models.preferred.read().favourites == []


async def test_d_makes_a_model_the_default_too(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await opened(shell)
        await shell.press("down", "d", until=lambda: ("model", CLAUDE) in shell.settings)
        assert shell.active.model == CLAUDE


async def test_e_chooses_the_effort_of_a_model_that_is_used_then(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await opened(shell)
        await shell.press("down", "e", shows="Effort of claude-sonnet-5-5")
        assert shell.active.model == CLAUDE


async def test_letters_behind_the_slash_narrow_and_escape_shows_all_again(open_shell: Any) -> None:
    async with open_shell(model="demo/guide", models=FakeModels((*MODELS, GLM))) as shell:
        sheet = await opened(shell)
        await shell.press("slash", *"glm", until=lambda: "1 / 1" in shell.text and chosen(shell) == GLM.reference)
        await shell.press("escape", shows="/ 4")
        assert (shell.top, chosen(shell)) == (sheet, GLM.reference)
        await shell.press("escape", until=lambda: shell.top is shell.screen)


async def test_tab_leaves_the_filter_so_that_letters_act_on_what_it_found(open_shell: Any) -> None:
    models = FakeModels((*MODELS, GLM))
    async with open_shell(model="demo/guide", models=models) as shell:
        sheet = await opened(shell)
        await shell.press("slash", *"glm", "tab", until=lambda: not sheet.query_one(LineInput).has_focus)
        assert "1 / 1" in shell.text
        await shell.press("asterisk", until=lambda: models.preferred.read().favourites == [GLM.reference])
        await shell.press("tab", *"-4", until=lambda: sheet.query_one(LineInput).text == "glm-4")


async def test_a_word_behind_the_command_opens_the_list_narrowed(open_shell: Any) -> None:
    async with open_shell(model="demo/guide", models=FakeModels((*MODELS, GLM))) as shell:
        shell.app.run_worker(run_model(shell.ctx, "glm 131"))
        await shell.until(lambda: "0   Enter" in shell.text)
        assert "No model has these words. PROVIDER/MODEL is used as typed." in shell.text
        await shell.press(*["backspace"] * 4, shows="1 / 1")
        await shell.press("enter", until=lambda: shell.active.model == GLM.reference)


async def test_a_reference_that_no_list_has_is_used_as_typed(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await opened(shell)
        await shell.press("slash", *"own/model", shows="Enter uses it as typed.")
        await shell.press("enter", until=lambda: shell.active.model == "own/model")


async def test_a_provider_without_a_key_asks_for_one_and_then_shows_its_models(open_shell: Any) -> None:
    models, onboarding = FakeModels(), FakeOnboarding()
    models.closed = (NO_KEY,)
    async with open_shell(model="demo/guide", models=models, onboarding=onboarding) as shell:
        await opened(shell)
        await shell.press("down", "down", "down", shows="› gemini: set GEMINI_API_KEY")
        assert "Enter stores a key" in shell.text
        await shell.press("d", "enter", shows="Paste an API key of gemini")
        await shell.press(*"secret-key-1", "enter", until=lambda: isinstance(shell.top, ModelSheet))
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
        await shell.press("slash", *"gateway", shows="› work: Could not reach gateway.example.")
        await shell.press("enter", until=lambda: models.refreshed == [False, True])
        assert isinstance(shell.top, ModelSheet)


async def test_r_asks_the_providers_again(open_shell: Any) -> None:
    models = FakeModels()
    async with open_shell(model="demo/guide", models=models) as shell:
        await opened(shell)
        await shell.press("r", until=lambda: models.refreshed == [False, True])


async def test_another_model_in_a_conversation_says_what_the_lost_cache_costs(open_shell: Any) -> None:
    async with open_shell(model="demo/guide", models=FakeModels((*MODELS, GLM))) as shell:
        conversation = await shell.say("go")
        conversation.record = replace(conversation.record, context_tokens=84_000, message_count=2)
        await opened(shell)
        await shell.press("slash", *"glm")
        await shell.until(lambda: "it reads 84k tokens anew, about $0.03" in " ".join(shell.text.split()))
        await shell.press("enter", until=lambda: shell.toasts)
        assert shell.toasts == [
            "z-ai/glm-4.7: its cache lacks this conversation: it reads 84k tokens anew, about $0.03. "
            "It cannot see images: 1 here is left out once refused."
        ]


async def test_a_key_goes_back_to_the_model_before_and_returns(open_shell: Any) -> None:
    async with open_shell(model="demo/guide") as shell:
        await shell.press("alt+m")
        await shell.until(lambda: shell.toasts == ["No other model was chosen before. /model lists all."])
        await shell.enter(f"/model {CLAUDE}", until=lambda: shell.active.model == CLAUDE)
        await shell.press("alt+m", until=lambda: shell.active.model == "demo/guide")
        await shell.press("alt+m", until=lambda: shell.active.model == CLAUDE)


async def test_star_and_default_behind_a_reference_need_no_list(open_shell: Any) -> None:
    models = FakeModels()
    async with open_shell(model="demo/guide", models=models) as shell:
        await shell.enter(f"/model {CLAUDE} *", until=lambda: shell.toasts == [f"{CLAUDE} is a favourite now."])
        assert shell.active.model == "demo/guide"
        await shell.enter(f"/model {CLAUDE} default", until=lambda: shell.settings == [("model", CLAUDE)])
        assert models.preferred.read().favourites == [CLAUDE]


@pytest.mark.parametrize("size", [(200, 60), (20, 6)])
async def test_ten_thousand_models_are_shown_on_any_screen(open_shell: Any, size: tuple[int, int]) -> None:
    many = tuple(ModelInfo("openrouter", f"maker/model-{number}", 131_072) for number in range(10_000))
    async with open_shell(model="demo/guide", size=size, models=FakeModels(many)) as shell:
        await opened(shell)
        await shell.press(*["pagedown"] * 3, *["up"] * 3, "down")
        await shell.press("slash", *"model-7777", until=lambda: chosen(shell) == "openrouter/maker/model-7777")


MODEL = "anthropic/claude-sonnet-5-5"


async def test_the_key_offers_the_levels_of_the_model_and_the_choice_stays_in_sight(open_shell: Any) -> None:
    async with open_shell((120, 40), model=MODEL) as shell:
        conversation = await shell.say("go")
        await shell.until(lambda: "claude-sonnet-5-5" in shell.status)
        assert "(" not in shell.status
        await shell.press("alt+t")
        await shell.until(lambda: isinstance(shell.top, PickerSheet) and "the provider decides" in shell.text)
        offered = shell.top.query_one("#rows").visual.plain
        assert [word in offered for word in ("default", "low", "medium", "high", "max")] == [True] * 5
        assert "no reasoning" not in offered, "this model cannot be without"
        await shell.press(*"high", "enter", until=lambda: "claude-sonnet-5-5 (high)" in shell.status)
        assert conversation.record.effort is Effort.HIGH
        await shell.command("/effort default")
        await shell.until(lambda: "(" not in shell.status)


async def test_two_keys_step_through_the_levels_of_the_model_and_stop_at_its_ends(open_shell: Any) -> None:
    async with open_shell((120, 40), model=MODEL) as shell:
        conversation = await shell.say("go")
        for level in (Effort.LOW, Effort.MEDIUM, Effort.HIGH, Effort.MAX, Effort.MAX):
            await shell.press("alt+full_stop", until=lambda level=level: f"({level.value})" in shell.status)
        for level in (Effort.HIGH, Effort.MEDIUM, Effort.LOW):
            await shell.press("alt+comma", until=lambda level=level: f"({level.value})" in shell.status)
        await shell.press("alt+comma", "alt+comma", until=lambda: "(" not in shell.status)
        assert conversation.record.effort is Effort.DEFAULT


async def test_a_new_conversation_begins_with_the_effort_chosen_before_it(open_shell: Any) -> None:
    async with open_shell((120, 40), model=MODEL) as shell:
        await shell.command("/effort low")
        await shell.until(lambda: "claude-sonnet-5-5 (low)" in shell.status)
        conversation = await shell.say("go")
        assert conversation.record.effort is Effort.LOW
        await shell.command("/new")
        await shell.until(lambda: "claude-sonnet-5-5 (low)" in shell.status)


@pytest.mark.parametrize(
    ("model", "line", "said"),
    [
        (MODEL, "/effort off", "Effort off: claude-sonnet-5-5 is sent low, its nearest."),
        (MODEL, "/effort ultra", "Efforts: default, off, low, medium, high, max; or higher or lower."),
        ("demo/guide", "/effort higher", "demo/guide has no levels of effort. /model chooses another model."),
        ("demo/guide", "/effort high", "Effort high: demo/guide has no levels and is sent none."),
    ],
)
async def test_a_level_that_the_model_lacks_is_said(open_shell: Any, model: str, line: str, said: str) -> None:
    async with open_shell((120, 40), model=model) as shell:
        await shell.command(line)
        await shell.until(lambda: said in shell.toasts)


async def test_a_change_from_elsewhere_is_shown(open_shell: Any, engine: FakeEngine) -> None:
    async with open_shell((120, 40), model=MODEL) as shell:
        conversation = await shell.say("go")
        await conversation.change(ConversationChanges(effort=Effort.MAX))
        await shell.until(lambda: "claude-sonnet-5-5 (max)" in shell.status)
