"""Commands on sheets of extensions: files of the folder, MCP servers."""

from __future__ import annotations

from phoenix_tui.commands.run import CommandContext
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.mcp import left_out, servers_in_view
from phoenix_tui.features.trust import trust_in_view
from phoenix_tui.modals.mcp_sheet import McpSheet
from phoenix_tui.modals.trust_sheet import TrustSheet


async def run_trust(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over an answer."""
    front = ScreenFrontEnd(ctx)
    await ctx.sheets.show(TrustSheet(front, await trust_in_view(front)))


async def run_mcp(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over an action."""
    front = ScreenFrontEnd(ctx)
    await ctx.sheets.show(McpSheet(front, await servers_in_view(front), await left_out(front), ctx.clipboard))
