"""`phoenix memory`: the notes of this project and of the user, for people and scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.memory.memory import NoteFolder, project_scope
from tests.support.cli import Phoenix


@pytest.fixture
def phoenix(tmp_path: Path) -> Phoenix:
    made = Phoenix(tmp_path / "home", tmp_path / "work")
    made.cwd.mkdir()
    notes = NoteFolder(made.home / "memory")
    notes.append("user/2026-11-20.md", "short \x1b[2Janswers")
    notes.append(f"{project_scope(made.cwd)}/2026-11-24.md", "## 10:00 UTC\nuse make")
    notes.append("projects/other-1/2026-11-23.md", "elsewhere")
    return made


async def test_the_list_has_the_notes_of_this_project_and_of_the_user(phoenix: Phoenix) -> None:
    ran = await phoenix.run("memory", "list")
    assert ran.out == (
        "NOTE                   BYTES  FIRST LINE\n"
        "project/2026-11-24.md  22     use make\n"
        "user/2026-11-20.md     18     short answers\n"
    )
    every = await phoenix.run("memory", "list", "--all", "--json")
    shown = [one["path"] for one in every.json]
    assert shown[0] == "user/2026-11-20.md"
    assert "projects/other-1/2026-11-23.md" in shown
    assert len(shown) == 3


async def test_a_note_is_shown_and_deleted_for_good_only_on_request(phoenix: Phoenix) -> None:
    assert (await phoenix.run("memory", "show", "project/2026-11-24.md")).out == "## 10:00 UTC\nuse make\n"
    assert (await phoenix.run("memory", "show", "projects/other-1/2026-11-23.md")).out == "elsewhere\n"
    refused = await phoenix.run("memory", "delete", "user/2026-11-20.md")
    assert (refused.code, refused.err) == (
        2,
        "phoenix: Notes have no trash: add --permanently, or use /memory, where u restores them.\n",
    )
    assert (await phoenix.run("memory", "delete", "user/2026-11-20.md", "--permanently")).code == 0
    gone = await phoenix.run("memory", "show", "user/2026-11-20.md")
    assert (gone.code, gone.err) == (
        2,
        "phoenix: There is no note user/2026-11-20.md; `phoenix memory list` shows all.\n",
    )


@pytest.mark.parametrize("path", ["../config.toml", "user/../../phoenix.db", "/etc/passwd", "project/\x1b[2J.md"])
async def test_no_other_file_is_shown_or_deleted(phoenix: Phoenix, path: str) -> None:
    for action in (("show",), ("delete", "--permanently")):
        ran = await phoenix.run("memory", *action, path)
        assert (ran.code, ran.err) == (2, "phoenix: There is no such note; notes are named like 2026-11-24.md.\n")
