"""Extensions of a folder in lines: the notice, the list, the answer, a change."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import phoenix_in
from tests.support.extended_folder import KEY, LINT, extended, write
from tests.support.program import program

ROWS, COLUMNS = 200, 400
"""Rows of a terminal on which nothing scrolls away or wraps during a test."""


async def test_files_are_listed_read_and_used_by_numbers(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    extended(phoenix.cwd)
    async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
        await running.shows("that are not used yet; /trust shows them.")
        running.type("/mcp\r")
        await running.shows("Not used before your yes: 1 server of this folder; see /trust.", "No MCP servers here.")
        running.type("/trust\r")
        await running.shows(f"Runs programs: .claude/settings.json, new: PreToolUse Bash: {LINT} · Stop: echo done")
        await running.shows("1. use all of them", "2. use none of them", "3. show one", "Number, or Enter for none:")
        assert KEY not in running.text
        running.type("3\r")
        await running.shows("3. scripts/lint.py, new: program")
        running.type("3\r")
        await running.shows("scripts/lint.py: print('fine')")
        running.type("1\r")
        await running.shows("Used from now on: 2 hooks, 1 server, 1 skill and 1 command.")
        write(phoenix.cwd / "scripts/lint.py", "import evil\n")
        running.type("/trust\r")
        await running.shows("scripts/lint.py, changed: program")
        running.type("\r")
    kept = json.loads((phoenix.home / "trust.json").read_text())["folders"][str(phoenix.cwd)]["sources"]
    assert kept["trusted"] is True
    assert len(kept["files"]) == 5


async def test_no_answer_keeps_nothing_and_a_folder_without_such_files_says_so(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
        await running.shows("You:")
        running.type("/trust\r")
        await running.shows("Nothing extends Phoenix in this folder")
        await running.shows("start in a folder of their own")
        running.type("\r")
        extended(phoenix.cwd)
        running.type("/trust\r")
        await running.shows("1. use all of them")
        running.type("\r")
        await running.until(lambda: running.text.rstrip().endswith("You:"))
    assert not (phoenix.home / "trust.json").exists()


async def test_a_folder_without_such_files_is_trusted_for_what_the_user_defined(tmp_path: Path) -> None:
    phoenix = phoenix_in(tmp_path)
    async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
        await running.shows("You:")
        running.type("/trust\r")
        await running.shows("1. start them here", "2. start them in a folder of their own")
        running.type("1\r")
        await running.shows("Hooks and servers that you defined yourself start in this folder.")
    kept = json.loads((phoenix.home / "trust.json").read_text())["folders"][str(phoenix.cwd)]["sources"]
    assert (kept["trusted"], kept["files"]) == (True, {})
