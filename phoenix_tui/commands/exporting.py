"""The open conversation as a file."""

from __future__ import annotations

from typing import Final

from phoenix_tui.cli.exits import CommandError
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.export import export as write_out


async def export(bench: CommandContext, target: str) -> None:
    """Write it as Markdown, or as JSON where the file's name ends so."""
    conversation = bench.desk.conversation
    if conversation is None:
        bench.tell("There is nothing to write yet.", bad=True)
        return
    try:
        path = await write_out(conversation, bench.desk.services, target)
    except CommandError as error:
        bench.tell(error.sentence, bad=True)
    else:
        bench.tell(f"Written to {path}.")


RUNS: Final[dict[str, Run]] = {"export": export}
