"""/profile: which kind of agent new conversations begin as."""

from __future__ import annotations

from typing import Final

from engine.ports.profiles import GENERAL
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.profiles import use_profile
from phoenix_tui.modals.profiles_sheet import ProfilesSheet


async def profile(ctx: CommandContext, name: str) -> None:
    """Choose one, or use the one that is named."""
    if not name:
        in_use = ctx.active.launch.profile or GENERAL
        name = await ctx.sheets.show(ProfilesSheet(ctx.active.services.profiles, in_use, ctx.toasts)) or ""
    if name:
        await use_profile(ScreenFrontEnd(ctx), name)


RUNS: Final[dict[str, CommandFunction]] = {"profile": profile}
