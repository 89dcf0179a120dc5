"""MCP servers in lines: listed, read, connected again, ended."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.mcp import details_of, end, left_out, reconnect, servers_in_view, switch
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.text.mcp_text import NO_SERVERS, row
from tools.clean import clean_line

ACTIONS: Final = ("Show details", "Connect again", "Use it here, or not", "End it")


async def _mcp(ctx: LinearContext, _: str) -> None:
    views = await servers_in_view(ctx)
    for notice in await left_out(ctx):
        ctx.say(notice)
    if not views:
        ctx.say(NO_SERVERS)
        return
    chosen = await ctx.choose("MCP servers:", [row(view) for view in views])
    if chosen is None:
        return
    name = views[chosen].name
    match await ctx.choose(f"{clean_line(name)}:", ACTIONS):
        case 0:
            ctx.read(f"MCP server {clean_line(name)}", await details_of(ctx, name))
        case 1:
            ctx.say(await reconnect(ctx, name))
        case 2:
            ctx.say(await switch(ctx, views[chosen]))
        case 3:
            ctx.say(await end(ctx, name))
        case _:
            pass  # none was wanted


RUNS: Final[dict[str, LineCommand]] = {"mcp": _mcp}
