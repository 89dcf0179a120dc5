"""/diff: what changed on disk."""

from __future__ import annotations

import asyncio
from typing import Final

from textual.app import App

from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.changes import FolderChanges
from phoenix_tui.modals.changes_sheet import ChangesSheet
from phoenix_tui.workspace.external_editor import open_outside
from tools.clean import clean_line

PARENTS: Final = "What sub-agents change belongs to their parent's turn: /agents parent goes there, then /diff."


async def diff(ctx: CommandContext, _: str) -> None:
    """Look through the changes of this conversation and its turns, and through what git has not committed."""
    active = ctx.active
    record = active.conversation.record if active.conversation is not None else None
    if active.conversation is not None and active.conversation.read_only:
        ctx.tell(active.conversation.read_only)
        return
    if record is not None and record.agent is not None:
        ctx.tell(PARENTS)
        return
    folder = record.cwd if record is not None else active.folder

    async def open_file(app: App[object], name: str) -> None:
        if not await asyncio.to_thread((folder / name).is_file):
            ctx.tell(f"{clean_line(name)} is not there any more.", bad=True)
        elif not await open_outside(app, folder / name, 1):
            ctx.tell("The editor could not be used: set VISUAL or EDITOR.", bad=True)

    async def copy(text: str) -> None:
        ctx.tell(f"Copied {len(text):,} characters {await ctx.clipboard.copy(text)}.")

    changes = FolderChanges(folder, active.services.runner, active.services.rewinding, record)
    await ctx.sheets.show(ChangesSheet(changes, open_file, copy, ctx.dock.composer.add))


RUNS: Final[dict[str, Run]] = {"diff": diff}
