"""MCP servers in lines: listed, read, connected again, ended."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.mcp import details_of, end, left_out, reconnect, servers_in_view, switch
from phoenix_tui.features.mcp_sign_in import begin, paste, sign_in_lines, sign_out
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.text.mcp_text import NO_SERVERS, row
from tools.clean import clean_line

ACTIONS: Final = ("Show details", "Connect again", "Use it here, or not", "End it", "Sign in", "Sign out")


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
        case 4:
            await _sign_in(ctx, name)
        case 5:
            ctx.say(await sign_out(ctx, name))
        case _:
            pass  # none was wanted


async def _sign_in(ctx: LinearContext, name: str) -> None:
    address = await begin(ctx, name)
    ctx.say(*sign_in_lines(name, address))
    if pasted := await ctx.ask_line("Pasted address, or Enter where the browser is on this machine"):
        ctx.say(await paste(ctx, name, pasted))


RUNS: Final[dict[str, LineCommand]] = {"mcp": _mcp}
