"""/route: whether a supervisor decides who answers, and its open decision."""

from __future__ import annotations

from typing import Final

from engine.executor.requests import Refused
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.route import change_route


async def route(ctx: CommandContext, asked: str) -> None:
    """On, off, start or alone."""
    said = await change_route(await ctx.active.current(), asked)
    if isinstance(said, Refused):
        ctx.tell(said.reason, bad=True)
    elif isinstance(said, str):
        ctx.tell(said)


RUNS: Final[dict[str, Run]] = {"route": route}
