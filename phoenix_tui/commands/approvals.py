"""/approvals: open questions in any conversation."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands.command_context import CommandContext, CommandFunction
from phoenix_tui.features.approvals import NOTHING_WAITS, asked_elsewhere, pending
from phoenix_tui.modals.approvals_sheet import ApprovalsSheet


async def approvals(ctx: CommandContext, _: str) -> None:
    """All of them, oldest first, to answer without going there."""
    engine = ctx.active.services.engine
    elsewhere = await asked_elsewhere(engine)
    if not pending(engine):
        ctx.tell("\n".join([NOTHING_WAITS, *elsewhere]))
        return
    sheet = ApprovalsSheet(engine, ctx.toasts, plain=ctx.active.launch.plain, elsewhere=elsewhere)
    if chosen := await ctx.sheets.show(sheet):
        await ctx.active.open(chosen)


RUNS: Final[dict[str, CommandFunction]] = {"approvals": approvals}
