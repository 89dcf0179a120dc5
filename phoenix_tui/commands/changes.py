"""/diff: changes on disk."""

from __future__ import annotations

import asyncio
from typing import Final

from textual.app import App

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.commands.screen_front_end import ScreenFrontEnd
from phoenix_tui.features.changes import changes_in_view
from phoenix_tui.modals.changes_sheet import ChangesSheet
from phoenix_tui.workspace.external_editor import open_outside
from tools.clean import clean_line


async def diff(ctx: CommandContext, _: str) -> None:
    """Show the changes of this conversation and its turns, and the uncommitted ones in git."""
    changes = changes_in_view(ScreenFrontEnd(ctx))
    if changes is None:
        return
    folder = changes.folder

    async def open_file(app: App[object], name: str) -> None:
        if not await asyncio.to_thread((folder / name).is_file):
            ctx.tell(f"{clean_line(name)} no longer exists.", bad=True)
        elif not await open_outside(app, folder / name, 1):
            ctx.tell("The editor cannot be started; set VISUAL or EDITOR.", bad=True)

    async def copy(text: str) -> None:
        ctx.tell(f"Copied {len(text):,} characters {await ctx.clipboard.copy(text)}.")

    await ctx.sheets.show(ChangesSheet(changes, open_file, copy, ctx.dock.composer.add))


RUNS: Final[dict[str, CommandFunction]] = {"diff": diff}
