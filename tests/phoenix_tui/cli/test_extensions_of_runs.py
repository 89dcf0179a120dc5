"""Runs of `phoenix -p` with the files that extend Phoenix: what reaches the model, the init line and stderr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


async def test_the_init_line_lists_what_there_is_and_stderr_names_what_is_wrong(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        root = phoenix.cwd / ".claude"
        write(root / "skills/pdf/SKILL.md", "---\ndescription: Reads PDF\n---\nRead.")
        write(root / "commands/git/commit.md", "Commit.")
        write(root / "agents/owl.md", "---\ndescription: Looks\n---\nLook.")
        write(root / "skills/bad/SKILL.md", "---\nname: bad\nx")
        write(root / "commands/bad.md", "---\n")
        write(root / "agents/bad.md", "---\nname: a b\n---\nx")
        write(root / "rules/bad.md", "---\npaths: '[z-a]'\n---\nx")
        ran = await phoenix.run("-p", "Hi", "--trust", "--output-format", "stream-json")
        doctor = (await phoenix.run("doctor")).out
        body: Any = server.requests[0].json
    init = ran.lines[0]
    assert (init["slash_commands"], init["skills"]) == (["git:commit", "pdf"], ["pdf"])
    assert init["agents"][-1] == "owl"
    assert "skill" in init["tools"]
    assert {tool["name"] for tool in body["tools"]} <= set(init["tools"])
    told = [line for line in ran.err.splitlines() if line.startswith("phoenix: ")]
    wrong = [f"{root}/{name}.md" for name in ("agents/bad", "skills/bad/SKILL", "commands/bad", "rules/bad")]
    assert [line.removeprefix("phoenix: ").partition(".md:")[0] + ".md" for line in told[:3]] == wrong[:3]
    assert told[3:] == ["phoenix: 1 more fault of files that extend Phoenix; `phoenix doctor` names it."]
    assert all(name in doctor for name in wrong)


async def test_an_untrusted_folder_has_no_faults_and_lists_nothing(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.cwd / ".claude/commands/bad.md", "---\n")
        write(phoenix.cwd / ".claude/commands/good.md", "Good.")
        ran = await phoenix.run("-p", "Hi", "--output-format", "stream-json")
    assert ran.lines[0]["slash_commands"] == []
    assert "bad.md" not in ran.err


async def test_a_command_of_another_program_runs_on_the_newest_model_of_the_line_it_names(tmp_path: Path) -> None:
    async with serve(says("Done.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        write(phoenix.home / ".claude/commands/fix.md", "---\nmodel: Haiku\n---\nFix $ARGUMENTS")
        ran = await phoenix.run("-p", "/fix it", "-m", "anthropic/claude-sonnet-5-5")
        body: Any = server.requests[0].json
    assert (ran.code, body["model"]) == (0, "claude-haiku-5-5")
    assert "not known" not in ran.err
