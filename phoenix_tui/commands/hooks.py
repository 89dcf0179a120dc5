"""/hooks: hooks of the folder in view and their runs."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features import hooks as use_cases


async def hooks(ctx: CommandContext, argument: str) -> None:
    """Choose one and read it, or try it out."""
    await use_cases.hooks(ScreenFrontEnd(ctx), argument)


RUNS: Final[dict[str, CommandFunction]] = {"hooks": hooks}
