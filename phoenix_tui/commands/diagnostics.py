"""/debug: records of model calls and logs."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features import diagnostics


async def debug(ctx: CommandContext, name: str) -> None:
    """Choose a file and read its end."""
    await diagnostics.debug(ScreenFrontEnd(ctx), name)


RUNS: Final[dict[str, CommandFunction]] = {"debug": debug}
