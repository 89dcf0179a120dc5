"""Commands about background commands: sending one there, and all there are."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd, on_screen
from phoenix_tui.features.jobs import background, jobs_in_view
from phoenix_tui.modals.jobs_sheet import JobsSheet


async def jobs(ctx: CommandContext, _: str) -> None:
    """Background commands: read one, end one."""
    front = ScreenFrontEnd(ctx)
    found = jobs_in_view(front)
    if found is not None:
        await ctx.sheets.show(JobsSheet(found, front))


RUNS: Final[dict[str, CommandFunction]] = {"background": on_screen(background), "jobs": jobs}
