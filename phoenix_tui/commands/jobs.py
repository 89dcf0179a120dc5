"""Commands about background commands: sending one there, and all there are."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.modals.jobs_sheet import JobsSheet


async def background(ctx: CommandContext, _: str) -> None:
    """Wait for the command that runs no longer."""
    ctx.sending.let_go()


async def jobs(ctx: CommandContext, _: str) -> None:
    """Background commands: read one, end one."""
    conversation = ctx.active.conversation
    if conversation is None or not conversation.jobs.all():
        ctx.tell("This conversation has no background commands.")
        return
    await ctx.sheets.show(JobsSheet(conversation.jobs, ctx.tell))


RUNS: Final[dict[str, Run]] = {"background": background, "jobs": jobs}
