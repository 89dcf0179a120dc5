"""/approvals: what waits for a yes or no in any conversation."""

from __future__ import annotations

import os
from typing import Final

from engine.machine.states import STATE_NAMES, AwaitingApproval
from engine.records import ConversationQuery
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.approvals import UNTITLED, pending
from phoenix_tui.modals.approvals_sheet import ApprovalsSheet

NOTHING: Final = "Nothing waits for your approval."


async def approvals(ctx: CommandContext, _: str) -> None:
    """All of them, oldest first, to answer without going there."""
    engine = ctx.active.services.engine
    elsewhere = [
        f"{row.title or UNTITLED} asks in process {row.owner_pid}; answer it there."
        for row in await engine.list(ConversationQuery())
        if row.state_name == STATE_NAMES[AwaitingApproval] and row.owner_pid not in {None, os.getpid()}
    ]
    if not pending(engine):
        ctx.tell("\n".join([NOTHING, *elsewhere]))
        return
    sheet = ApprovalsSheet(engine, ctx.tell, plain=ctx.active.launch.plain, elsewhere=elsewhere)
    if chosen := await ctx.sheets.show(sheet):
        await ctx.active.open(chosen)


RUNS: Final[dict[str, Run]] = {"approvals": approvals}
