"""/effort on the screen: what is offered, what the status line shows, what new conversations begin with."""

from __future__ import annotations

from typing import Any

import pytest

from engine.ports import ConversationChanges
from engine.run_options import Effort
from phoenix_tui.modals.rows_sheet import PickerSheet
from tests.support.fake_engine import FakeEngine

MODEL = "anthropic/claude-sonnet-5-5"


async def test_the_key_offers_the_levels_of_the_model_and_the_choice_stays_in_sight(open_shell: Any) -> None:
    async with open_shell((120, 40), model=MODEL) as shell:
        conversation = await shell.say("go")
        await shell.until(lambda: "claude-sonnet-5-5" in shell.status)
        assert "(" not in shell.status
        await shell.pilot.press("alt+t")
        await shell.until(lambda: isinstance(shell.top, PickerSheet) and "the provider decides" in shell.text)
        offered = shell.top.query_one("#rows").visual.plain
        assert [word in offered for word in ("default", "low", "medium", "high", "max")] == [True] * 5
        assert "no reasoning" not in offered, "this model cannot be without"
        await shell.pilot.press(*"high", "enter")
        await shell.until(lambda: "claude-sonnet-5-5 (high)" in shell.status)
        assert conversation.record.effort is Effort.HIGH
        await shell.command("/effort default")
        await shell.until(lambda: "(" not in shell.status)


async def test_two_keys_step_through_the_levels_of_the_model_and_stop_at_its_ends(open_shell: Any) -> None:
    async with open_shell((120, 40), model=MODEL) as shell:
        conversation = await shell.say("go")
        for level in (Effort.LOW, Effort.MEDIUM, Effort.HIGH, Effort.MAX, Effort.MAX):
            await shell.pilot.press("alt+full_stop")
            await shell.until(lambda level=level: f"({level.value})" in shell.status)
        for level in (Effort.HIGH, Effort.MEDIUM, Effort.LOW):
            await shell.pilot.press("alt+comma")
            await shell.until(lambda level=level: f"({level.value})" in shell.status)
        await shell.pilot.press("alt+comma", "alt+comma")
        await shell.until(lambda: "(" not in shell.status)
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
        ("demo/guide", "/effort", "demo/guide has no levels of effort."),
        ("demo/guide", "/effort higher", "demo/guide has no levels of effort."),
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
