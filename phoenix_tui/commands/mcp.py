"""/mcp: the MCP servers of the conversation in view."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.mcp import left_out, servers_in_view
from phoenix_tui.modals.mcp_sheet import McpSheet


async def mcp(ctx: CommandContext, _: str) -> None:
    """All of them; the sheet stays open over an action."""
    front = ScreenFrontEnd(ctx)
    await ctx.sheets.show(McpSheet(front, await servers_in_view(front), await left_out(front), ctx.clipboard))


RUNS: Final[dict[str, CommandFunction]] = {"mcp": mcp}
