"""Notes in lines: listed, read, deleted, restored."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import with_claude
from tests.support.loopback import serve
from tests.support.program import program

ROWS, COLUMNS = 200, 400
"""Rows of a terminal on which nothing scrolls away or wraps during a test."""


async def test_a_note_is_read_deleted_and_restored_by_numbers(tmp_path: Path) -> None:
    async with serve() as server:
        phoenix = with_claude(tmp_path, server.url)
        note = phoenix.home / "memory" / "user" / "2026-11-20.md"
        note.parent.mkdir(parents=True)
        note.write_text("short answers\x1b[2J\nand tabs\n")
        async with program(phoenix, "--screen-reader", rows=ROWS, columns=COLUMNS) as running:
            await running.shows("You:")
            running.type("/memory\r")
            await running.shows("Notes:", "1. 2026-11-20, Yours, in every project, ~6 tokens: short answers")
            running.type("1\r")
            await running.shows("1. read it", "2. show its path, to edit it", "3. delete it")
            running.type("1\r")
            await running.shows("and tabs")
            running.type("/memory\r")
            await running.shows("Notes:")
            running.type("1\r")
            await running.shows("3. delete it")
            running.type("3\r")
            await running.shows("2026-11-20 deleted; /memory undo restores it.")
            assert not note.exists()
            running.type("/memory\r")
            await running.shows("There are no notes yet.")
            running.type("/memory undo\r")
            await running.shows("2026-11-20 restored.")
    assert note.read_text() == "short answers\x1b[2J\nand tabs\n"
