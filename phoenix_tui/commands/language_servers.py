"""/lsp: language servers of the folder in view."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features import language_servers as use_cases


async def language_servers(ctx: CommandContext, argument: str) -> None:
    """Choose one and read it, or answer for the folder."""
    await use_cases.language_servers(ScreenFrontEnd(ctx), argument)


RUNS: Final[dict[str, CommandFunction]] = {"lsp": language_servers}
