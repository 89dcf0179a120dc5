"""Runs of `phoenix -p` with the files that extend Phoenix: what reaches the model, the init line and stderr."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli import with_claude
from tests.support.extended_folder import write
from tests.support.journeys import says
from tests.support.loopback import serve


async def test_local_instructions_rules_and_those_of_an_attached_file_reach_the_model(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.home / ".claude/CLAUDE.md", "Of the user.")
        write(phoenix.cwd / "CLAUDE.md", "Of the project.")
        write(phoenix.cwd / "CLAUDE.local.md", "Of this checkout.")
        write(phoenix.cwd / ".claude/rules/all.md", "For all.")
        write(phoenix.cwd / ".claude/rules/py.md", "---\npaths: '**/*.py'\n---\nFor Python.")
        write(phoenix.cwd / "a.py", "pass\n")
        ran = await phoenix.run("-p", "Look at @a.py", "--trust")
        body = server.requests[0].json
    assert (ran.code, ran.out) == (0, "Done.\n")
    system, message = json.dumps(body["system"]), json.dumps(body["messages"])
    order = ["Of the user.", "Of the project.", "Of this checkout.", "For all."]
    places = [system.index(text) for text in order]
    assert places == sorted(places)
    assert "For Python." not in system
    assert "[Instructions for files in **/*.py, from " in message
    assert "For Python." in message
    assert "attached instructions of .claude/rules/py.md" in ran.err
