"""/trust: the files that extend Phoenix in the folder in view, and the answer about them."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.trust import trust_in_view
from phoenix_tui.modals.trust_sheet import TrustSheet


async def trust(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over an answer."""
    front = ScreenFrontEnd(ctx)
    await ctx.sheets.show(TrustSheet(front, await trust_in_view(front)))


RUNS: Final[dict[str, CommandFunction]] = {"trust": trust}
