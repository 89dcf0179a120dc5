"""/trace in lines: the tree of the newest run."""

from __future__ import annotations

from typing import Final

from phoenix_tui.features.traces import newest_trace
from phoenix_tui.linear.context import LinearContext, LineCommand
from phoenix_tui.text.trace_text import spoken_lines


async def _trace(ctx: LinearContext, _: str) -> None:
    trace = await newest_trace(ctx)
    if trace is not None:
        ctx.say(*spoken_lines(trace))


RUNS: Final[dict[str, LineCommand]] = {"trace": _trace}
