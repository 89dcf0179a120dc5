"""Commands on conversations: open, name, copy, archive, stop."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.archive import archive_or_delete
from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import on_screen
from phoenix_tui.features import conversations


async def new(ctx: CommandContext, _: str) -> None:
    """An empty conversation."""
    if ctx.active.conversation is not None:
        ctx.active.conversation.hooks.end_reason = "clear"
    await ctx.active.begin()


async def archive(ctx: CommandContext, _: str) -> None:
    """Put the open conversation away."""
    if ctx.active.conversation is not None:
        await archive_or_delete(ctx, [ctx.active.conversation.id], delete=False)


async def delete(ctx: CommandContext, _: str) -> None:
    """Move the open conversation to the trash."""
    if ctx.active.conversation is not None:
        await archive_or_delete(ctx, [ctx.active.conversation.id], delete=True)


RUNS: Final[dict[str, CommandFunction]] = {
    "new": new,
    "resume": on_screen(conversations.resume),
    "rename": on_screen(conversations.rename, listed=True),
    "fork": on_screen(conversations.fork, listed=True),
    "retry": on_screen(conversations.retry),
    "stop": on_screen(conversations.stop),
    "stopall": on_screen(conversations.stop_all),
    "archive": archive,
    "delete": delete,
}
