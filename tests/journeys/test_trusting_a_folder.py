"""A repository with hooks and a server: the notice, /trust, yes, a changed script, the notice again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.extended_folder import LINT, extended, write
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import ENTER, ESC, Program, program


async def open_sheet(running: Program) -> None:
    """Run /trust; Esc ends the typing, so that a letter behind it is a key."""
    running.type("/trust")
    await running.shows("what extends Phoenix")
    running.type(ESC)
    await running.lacks("what extends Phoenix")
    running.type(ENTER)


@pytest.mark.pty
async def test_a_user_trusts_a_repository_and_meets_its_change(tmp_path: Path) -> None:
    async with serve(says("Fine."), says("Fine.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        extended(phoenix.cwd)
        async with program(phoenix, columns=80, rows=24) as running:
            await running.ready()
            await running.until(lambda: "/trust" in running.text, "the notice")
            assert not (phoenix.home / "trust.json").exists()
            await open_sheet(running)
            await running.shows("Extensions of this folder", f"PreToolUse Bash: {LINT}", "Not used yet.")
            running.type("y")
            await running.shows("Used from now on: 2 hooks, 1 server, 1 skill and 1 command.")
            running.type(ESC)
            await running.lacks("Used from now on")
            write(phoenix.cwd / "scripts/lint.py", "import evil\n")
            await running.send("Hello")
            await running.until(lambda: "lint.py changed" in running.text, "the second notice")
            await running.shows("Fine.")
            await open_sheet(running)
            await running.shows("so what runs programs is off.")
            running.type("s")
            await running.shows("-print('fine')", "+import evil")
        assert "import evil" not in (phoenix.home / "trust.json").read_text()
