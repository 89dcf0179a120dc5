"""Drafts put aside in lines, over a restart."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import program

ROWS, COLUMNS = 100, 160


async def test_a_text_is_put_aside_and_sent_after_a_restart(tmp_path: Path) -> None:
    async with serve(says("Hello.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/stash an old idea\r")
            await running.shows("Put aside. /stash lists the drafts.")
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/stash\r")
            await running.shows("1. an old idea")
            running.type("1\r")
            await running.shows("Enter sends it, Esc keeps it")
            running.type(", improved\r")
            await running.shows("Assistant: Hello.")
            running.type("/stash\r")
            await running.shows("No draft is put aside.")
    assert "an old idea, improved" in server.requests[0].body.decode()
