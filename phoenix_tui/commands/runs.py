"""What a run did, used and cost: of the last one, and of one that is chosen."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from phoenix_tui.commands.command_context import CommandContext
from phoenix_tui.modals.picker_sheet import PickerRow, PickerSheet
from phoenix_tui.text.labels import clock, money
from phoenix_tui.text.run_text import run_heading, run_lines

LISTED: Final = 100
"""Runs to choose from, the newest."""
HANG: Final = 2


async def last_run(ctx: CommandContext, conversation_id: str) -> Content:
    """The details of the newest run, behind a heading; nothing where there was none."""
    newest = await ctx.active.services.library.runs(conversation_id, 1)
    if not newest:
        return Content("")
    return Content.assemble("\n\n", ("Last run", "bold"), "\n", "\n".join(run_lines(newest[0])))


async def choose_run(ctx: CommandContext, conversation_id: str) -> None:
    """Choose a run and read its details."""
    found = await ctx.active.services.library.runs(conversation_id, LISTED)
    if not found:
        ctx.tell("Nothing ran here yet.")
        return
    choices = [
        PickerRow(run.id, run_heading(run), " · ".join(filter(None, (clock(run.seconds), money(run.cost_usd)))))
        for run in found
    ]
    chosen = await ctx.sheets.show(PickerSheet("Runs of this conversation, newest first", choices))
    for run in found:
        if run.id == chosen:
            ctx.sheets.read("Run details", Content("\n".join(run_lines(run))), HANG)
