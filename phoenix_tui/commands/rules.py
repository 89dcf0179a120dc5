"""/rules: calls that run without a question, and removing rules."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.rules import rule_places
from phoenix_tui.modals.rules_sheet import RulesSheet


async def rules(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over changes."""
    places = rule_places(ScreenFrontEnd(ctx))
    await ctx.sheets.show(RulesSheet(ctx.active.services.engine.rules, places))


RUNS: Final[dict[str, CommandFunction]] = {"rules": rules}
