"""/worktree: a new conversation in a git worktree of its own."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.worktree import worktree


async def _worktree(ctx: CommandContext, argument: str) -> None:
    """Begin in a worktree, or merge, remove or list them; then count the commits in view again."""
    try:
        await worktree(ScreenFrontEnd(ctx), argument)
    finally:
        ctx.environment.count_commits()
    await ctx.active.index.reload()


RUNS: Final[dict[str, CommandFunction]] = {"worktree": _worktree}
