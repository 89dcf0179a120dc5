"""MCP servers in lines: listed, read, connected again, ended, signed in to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from engine.ports.mcp import ServerView
from phoenix_tui.features.mcp import (
    allow_secrets,
    details_of,
    end,
    enter_sandbox,
    forget_kept,
    kept_question,
    leave_sandbox,
    left_out,
    reconnect,
    sandbox_question,
    secrets_question,
    servers_in_view,
    switch,
    switch_for_good,
)
from phoenix_tui.features.mcp_sign_in import begin, paste, sign_in_lines, sign_out
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.text.server_text import NO_SANDBOX, NO_SERVERS, row
from tools.clean import clean_line
from tools.sandbox_mode import SandboxMode

PASTED: Final = "Pasted address, or Enter where the browser is on this machine"
GIVE: Final = "Give it the variables that it wants"


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
    view = views[chosen]
    actions = [words for words in ACTIONS if view.secrets or words != GIVE]
    action = await ctx.choose(f"{clean_line(view.name)}:", actions)
    if action is not None and (said := await ACTIONS[actions[action]](ctx, view)):
        ctx.say(said)


async def _details(ctx: LinearContext, view: ServerView) -> str:
    ctx.read(f"MCP server {clean_line(view.name)}", await details_of(ctx, view.name))
    return ""


async def _reconnect(ctx: LinearContext, view: ServerView) -> str:
    return await reconnect(ctx, view.name)


async def _end(ctx: LinearContext, view: ServerView) -> str:
    return await end(ctx, view.name)


async def _sign_in(ctx: LinearContext, view: ServerView) -> str:
    ctx.say(*sign_in_lines(view.name, await begin(ctx, view.name)))
    pasted = await ctx.ask_line(PASTED)
    return await paste(ctx, view.name, pasted) if pasted else ""


async def _sign_out(ctx: LinearContext, view: ServerView) -> str:
    return await sign_out(ctx, view.name)


async def _give(ctx: LinearContext, view: ServerView) -> str:
    yes = await ctx.confirm(secrets_question(view), "give them", "do not")
    return await allow_secrets(ctx, view) if yes else ""


async def _sandbox(ctx: LinearContext, view: ServerView) -> str:
    if view.sandbox is None:
        return NO_SANDBOX
    if view.sandbox is SandboxMode.OFF:
        return await enter_sandbox(ctx, view)
    yes = await ctx.confirm(sandbox_question(view), "run it without", "keep the sandbox")
    return await leave_sandbox(ctx, view) if yes else ""


async def _forget(ctx: LinearContext, view: ServerView) -> str:
    yes = await ctx.confirm(kept_question(view), "remove it", "keep it")
    return await forget_kept(ctx, view) if yes else ""


ACTIONS: Final[Mapping[str, Callable[[LinearContext, ServerView], Awaitable[str]]]] = {
    "Show details": _details,
    "Connect again": _reconnect,
    "Use it here, or not": switch,
    "End it": _end,
    "Sign in": _sign_in,
    "Sign out": _sign_out,
    "Off for good, or on again": switch_for_good,
    "In a sandbox, or without": _sandbox,
    "Remove what it keeps": _forget,
    GIVE: _give,
}
RUNS: Final[dict[str, LineCommand]] = {"mcp": _mcp}
