"""Extensions in lines: files of the folder, MCP servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from engine.ports.mcp import ServerView
from phoenix_tui.config.sources.report import SourceEntry, SourceReport
from phoenix_tui.features.mcp import (
    allow_secrets,
    begin,
    details_of,
    end,
    enter_sandbox,
    forget_kept,
    kept_question,
    leave_sandbox,
    left_out,
    paste,
    reconnect,
    sandbox_question,
    secrets_question,
    servers_in_view,
    sign_in_lines,
    sign_out,
    switch,
    switch_for_good,
)
from phoenix_tui.features.trust import NO_FILES, answer, describe_source, sections, standing, text_of, trust_in_view
from phoenix_tui.linear.line_context import LinearContext
from phoenix_tui.text.server_text import NO_SANDBOX, NO_SERVERS, row
from tools.call_values import SandboxMode
from tools.clean import clean_line, reveal_name

TRUST_ACTIONS: Final = ("use all of them", "use none of them", "show one")
OWN_ACTIONS: Final = ("start them here", "start them in a folder of their own")


async def run_trust(ctx: LinearContext, _argument: str) -> None:
    report = await trust_in_view(ctx)
    if not report.entries:
        ctx.say(NO_FILES)
        done = await ctx.choose(standing(report), OWN_ACTIONS)
        if done is not None:
            ctx.say((await answer(ctx, report, trusted=done == 0))[1])
        return
    for heading, entries in sections(report.entries).items():
        ctx.say(f"{heading}:", *(_row(entry) for entry in entries))
    while (done := await ctx.choose(standing(report) or "Files of this folder:", TRUST_ACTIONS)) == TRUST_ACTIONS.index(
        "show one"
    ):
        await _show(ctx, report)
    if done is not None:
        ctx.say((await answer(ctx, report, trusted=done == 0))[1])


async def _show(ctx: LinearContext, report: SourceReport) -> None:
    chosen = await ctx.choose("Files:", [_row(entry) for entry in report.entries])
    if chosen is not None:
        entry = report.entries[chosen]
        ctx.read(reveal_name(entry.name), await text_of(ctx, report, entry))


def _row(entry: SourceEntry) -> str:
    return f"{reveal_name(entry.name)}, {entry.state.value}: {describe_source(entry)}".removesuffix(": ")


PASTED: Final = "Pasted address, or Enter where the browser is on this machine"
GIVE: Final = "Give it the variables that it wants"


async def run_mcp(ctx: LinearContext, _: str) -> None:
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
    actions = [words for words in SERVER_ACTIONS if view.secrets or words != GIVE]
    action = await ctx.choose(f"{clean_line(view.name)}:", actions)
    if action is not None and (said := await SERVER_ACTIONS[actions[action]](ctx, view)):
        ctx.say(said)


async def _details(ctx: LinearContext, view: ServerView) -> str:
    ctx.read(f"MCP server {clean_line(view.name)}", await details_of(ctx, view.name))
    return ""


async def _sign_in(ctx: LinearContext, view: ServerView) -> str:
    ctx.say(*sign_in_lines(view.name, await begin(ctx, view.name)))
    pasted = await ctx.ask_line(PASTED)
    return await paste(ctx, view.name, pasted) if pasted else ""


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


SERVER_ACTIONS: Final[Mapping[str, Callable[[LinearContext, ServerView], Awaitable[str]]]] = {
    "Show details": _details,
    "Connect again": lambda ctx, view: reconnect(ctx, view.name),
    "Use it here, or not": switch,
    "End it": lambda ctx, view: end(ctx, view.name),
    "Sign in": _sign_in,
    "Sign out": lambda ctx, view: sign_out(ctx, view.name),
    "Off for good, or on again": switch_for_good,
    "In a sandbox, or without": _sandbox,
    "Remove what it keeps": _forget,
    GIVE: _give,
}
