"""The open conversation as a file."""

from __future__ import annotations

from typing import Final

from phoenix_tui.cli.exits import CommandError
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.export import export as write_out


async def export(ctx: CommandContext, target: str) -> None:
    """Write it as Markdown, or as JSON where the file's name ends so."""
    conversation = ctx.active.conversation
    if conversation is None:
        ctx.tell("There is nothing to write yet.", bad=True)
        return
    try:
        path = await write_out(conversation, ctx.active.services, target)
    except CommandError as error:
        ctx.tell(error.sentence, bad=True)
    else:
        ctx.tell(f"Written to {path}.")


RUNS: Final[dict[str, Run]] = {"export": export}
