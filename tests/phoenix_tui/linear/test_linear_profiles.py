"""Profiles in lines: listed with their faults, chosen by number or name."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.journeys import rows, says
from tests.support.loopback import serve
from tests.support.program import program

ROWS, COLUMNS = 200, 400
"""Rows of a terminal on which nothing scrolls away or wraps during a test."""


async def test_a_profile_is_chosen_by_number_and_left_by_name(tmp_path: Path) -> None:
    async with serve(says("Here."), says("There.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        (phoenix.home / "profiles").mkdir(parents=True)
        (phoenix.home / "profiles" / "mine.md").write_text("---\ncolour: red\n---\n")
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/profile\r")
            await running.shows(
                "mine.md:2: 'colour: red' is not a valid key", "1. general (now), Any task", "2. explore,"
            )
            running.type("2\r")
            await running.shows("This conversation starts as explore: mode plan.")
            running.type("where is it\r")
            await running.shows("Assistant: Here.")
            running.type("/profile general\r")
            await running.shows("New conversations start as general. This one is unchanged.")
            running.type("/profile nobody\r")
            await running.shows("There is no profile 'nobody'")
            running.type("/new\r")
            await running.shows("New conversation.")
            running.type("go on\r")
            await running.shows("Assistant: There.")
    found = rows(phoenix, "SELECT profile, permission_mode FROM conversations ORDER BY rowid")
    assert found == [("explore", "plan"), ("", "ask")]
