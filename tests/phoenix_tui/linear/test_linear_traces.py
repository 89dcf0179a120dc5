"""/trace in lines: the tree of the newest run, without bars."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import phoenix_in
from tests.support.program import program


async def test_the_newest_run_is_read_out(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path, PHOENIX_PERMISSION_MODE="auto")
    async with program(phoenix, "--screen-reader", rows=200, columns=400) as running:
        await running.shows("You:")
        running.type("/trace\r")
        await running.shows("There are no runs to trace yet.")
        running.type("run `echo built`\r")
        await running.shows("demo/guide: rules, no model.")
        running.type("/trace\r")
        await running.shows("success · ", "2 model calls, 1 tool call", "llm guide: ok, ", "tool bash: success, ")
