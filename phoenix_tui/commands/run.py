"""Run a slash command by name."""

from __future__ import annotations

from typing import Final

from phoenix_tui.commands import (
    approvals,
    blocks,
    context,
    conversations,
    history,
    images,
    panes,
    reading,
    rewinding,
    searching,
    settings,
    shelving,
)
from phoenix_tui.commands.bench import Bench, Run
from phoenix_tui.commands.catalogue import closest
from phoenix_tui.screens.desk import ENGINE_ERRORS

RUNS: Final[dict[str, Run]] = {
    **blocks.RUNS,
    **context.RUNS,
    **conversations.RUNS,
    **history.RUNS,
    **images.RUNS,
    **settings.RUNS,
    **reading.RUNS,
    **rewinding.RUNS,
    **searching.RUNS,
    **panes.RUNS,
    **approvals.RUNS,
    **shelving.RUNS,
}


async def run_command(bench: Bench, name: str, argument: str) -> bool:
    """Do it; an unknown name is answered with the nearest one. False when there is no such command."""
    run = RUNS.get(name)
    if run is None:
        near = closest(name)
        bench.tell(f"There is no /{name}.{f' Did you mean /{near}?' if near else ' /help lists all.'}", bad=True)
        return False
    try:
        await run(bench, argument)
    except ENGINE_ERRORS as error:
        bench.tell(str(error), bad=True)
    return True
