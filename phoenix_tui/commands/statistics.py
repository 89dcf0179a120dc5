"""/stats: usage and cost over all conversations."""

from __future__ import annotations

import time
from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.statistics import statistics_of
from phoenix_tui.modals.statistics_sheet import StatisticsSheet


async def stats(ctx: CommandContext, page: str) -> None:
    """All pages; `page` names the first one shown."""
    api = statistics_of(ScreenFrontEnd(ctx))
    await ctx.sheets.show(StatisticsSheet(api, time.time(), page=page, plain=ctx.active.launch.plain))


RUNS: Final[dict[str, CommandFunction]] = {"stats": stats}
