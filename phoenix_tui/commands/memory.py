"""/memory: the notes of the project and of the user."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.memory import notes_in_view
from phoenix_tui.modals.notes_sheet import NotesSheet


async def memory(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over changes."""
    front = ScreenFrontEnd(ctx)
    await ctx.sheets.show(NotesSheet(front, await notes_in_view(front)))


RUNS: Final[dict[str, CommandFunction]] = {"memory": memory}
