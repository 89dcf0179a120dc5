"""`make trial`: a skill and hook scripts in a folder, one of which does not do what it should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.peers.trial import try_folder
from tests.support.hooked import PYTHON, script

SKILL = "---\nname: pdf\ndescription: Reads forms.\n---\n# Forms\n\nRun the script, then look at the last page.\n"


def folder_in(place: Path) -> Path:
    skill = place / "skills" / "pdf"
    script(skill / "scripts" / "fill.py", "#!/usr/bin/env python3\nprint('usage: fill FORM')\n")
    (skill / "SKILL.md").write_text(SKILL)
    (place / "hooks").mkdir()
    script(place / "hooks" / "quiet.py", PYTHON)
    (place / "hooks" / "record.log").write_text("no hook")
    return place


@pytest.mark.pty
async def test_each_skill_and_each_hook_has_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await try_folder(folder_in(tmp_path), on_screen=True) == 0
    rows = [row.split(" | ") for row in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[0].removeprefix("| "), row[1], row[3].removesuffix(" |")) for row in rows] == [
        ("pdf", "in the list of the model", "ok"),
        ("pdf", "loaded by the model", "ok"),
        ("pdf", "starts scripts/fill.py", "ok"),
        ("pdf", "called by the user", "ok"),
        ("pdf", "called on the screen", "ok"),
        ("quiet.py", "runs", "ok"),
        ("quiet.py", "on the screen", "ok"),
    ]
    assert "usage: fill FORM" in rows[2][2]


async def test_what_differs_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "skills" / "broken").mkdir(parents=True)
    (tmp_path / "skills" / "broken" / "SKILL.md").write_bytes(b"---\nname: broken\n---\n\xff no text at all\n")
    hook = tmp_path / "hooks" / "guard"
    script(hook / "guard.sh", "#!/bin/sh\nexit 3\n")
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "$TRIAL/guard.sh"}]}]}
    (hook / "trial.json").write_text(json.dumps({"hooks": hooks, "shows": ["never said"]}))
    assert await try_folder(tmp_path, on_screen=False) == 1
    out = capsys.readouterr().out
    assert "| guard | runs | PreToolUse error | otherwise |" in out
    assert "| guard | shows 'never said' |  | otherwise |" in out
    assert "| broken | in the list of the model | broken: | otherwise |" in out
