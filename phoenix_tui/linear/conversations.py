"""Commands on conversations: begin one, remove one, search messages."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features import conversations
from phoenix_tui.features.conversations import archive_or_delete
from phoenix_tui.features.worktree import worktree
from phoenix_tui.linear.line_context import LinearContext, LineCommand

run_fork: Final[LineCommand] = conversations.fork
run_rename: Final[LineCommand] = conversations.rename
run_worktree: Final[LineCommand] = worktree


async def run_new(ctx: LinearContext, _: str) -> None:
    if ctx.active.conversation is not None:
        ctx.active.conversation.hooks.end_reason = "clear"
    await ctx.active.put_away("")
    ctx.say("New conversation.")


async def run_now(ctx: LinearContext, text: str) -> None:
    if text:
        await ctx.active.send(text, interrupt=True)


async def run_delete(ctx: LinearContext, _: str) -> None:
    await _archive_or_delete(ctx, delete=True)


async def run_archive(ctx: LinearContext, _: str) -> None:
    await _archive_or_delete(ctx, delete=False)


async def _archive_or_delete(ctx: LinearContext, *, delete: bool) -> None:
    conversation = ctx.conversation
    if conversation is None:
        ctx.say("No conversation is open.")
        return
    if not ctx.active.busy and not conversation.read_only:
        await ctx.active.put_away("")
    ctx.say((await archive_or_delete(ctx.services.engine, [conversation.id], delete=delete)).words())
