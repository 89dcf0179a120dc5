"""/approvals: what waits for a yes or no in any conversation."""

from __future__ import annotations

import os
from typing import Final

from engine.machine.states import STATE_NAMES, AwaitingApproval
from engine.records import ConversationQuery
from phoenix_tui.commands.command_context import CommandContext, Run
from phoenix_tui.features.approvals import UNTITLED, pending
from phoenix_tui.modals.approvals import ApprovalsSheet

NOTHING: Final = "Nothing waits for your approval."


async def approvals(bench: CommandContext, _: str) -> None:
    """All of them, oldest first, to answer without going there."""
    engine = bench.desk.services.engine
    elsewhere = [
        f"{row.title or UNTITLED} asks in process {row.owner_pid}; answer it there."
        for row in await engine.list(ConversationQuery())
        if row.state_name == STATE_NAMES[AwaitingApproval] and row.owner_pid not in {None, os.getpid()}
    ]
    if not pending(engine):
        bench.tell("\n".join([NOTHING, *elsewhere]))
        return
    sheet = ApprovalsSheet(engine, bench.tell, plain=bench.desk.launch.plain, elsewhere=elsewhere)
    if chosen := await bench.sheets.show(sheet):
        await bench.desk.open(chosen)


RUNS: Final[dict[str, Run]] = {"approvals": approvals}
