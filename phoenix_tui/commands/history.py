"""The prompts that were sent before, from this folder or from all."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.modals.history_sheet import HistorySheet


async def history(ctx: CommandContext, argument: str) -> None:
    """Search them; the chosen one takes the place of the draft, which undo brings back."""
    composer = ctx.dock.composer
    prompts = composer.draft.prompts
    if prompts is None:
        return
    chosen = await ctx.sheets.show(HistorySheet(prompts, ctx.dock, argument))
    if chosen is not None:
        composer.put(chosen)


RUNS: Final[dict[str, CommandFunction]] = {"history": history}
