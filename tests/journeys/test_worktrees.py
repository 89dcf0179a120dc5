"""A conversation in a worktree beside one in the repository: begun, told apart in the list, merged, removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Phoenix, with_claude
from tests.support.git_repositories import commit, git, repository
from tests.support.journeys import rows, says
from tests.support.loopback import serve
from tests.support.program import program
from tests.support.waiting import typing_guard
from tools.git.repository import FOLDER


@pytest.mark.pty
async def test_a_worktree_beside_the_repository(tmp_path: Path) -> None:
    async with serve(says("Here."), says("There.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix"
        async with program(phoenix, columns=80, rows=24) as running:
            await running.ready()
            await running.send("hello here")
            await running.shows("Here.", "○ ready")
            await running.send("/worktree fix")
            await running.lacks("Here.")
            await running.until(lambda: (tree / "README").exists(), "the worktree")
            await running.send("hello there")
            await running.shows("There.", "phoenix/fix")
            commit(tree, "new", "1\n")
            await running.send("/worktree merge")
            await running.shows("Merge 1 commit of phoenix/fix into main?")
            await typing_guard()
            running.type("y")
            await running.until(lambda: (phoenix.cwd / "new").exists(), "the merged file")
            await running.shows("was fast-forwarded to")
            await running.send("/worktree remove")
            await running.shows("Remove the worktree fix?")
            await typing_guard()
            running.type("y")
            await running.until(lambda: not tree.exists(), "the removal")
            await running.send("/worktree fix")
            await running.until(lambda: (tree / "new").exists(), "the worktree again")
        assert git(tree, "log", "-1", "--format=%s %D") == "change new HEAD -> phoenix/fix, main"


def folders(phoenix: Phoenix) -> set[str]:
    return {str(row[0]) for row in rows(phoenix, "SELECT cwd FROM conversations")}


@pytest.mark.pty
async def test_a_copy_of_a_conversation_works_in_a_worktree(tmp_path: Path) -> None:
    async with serve(says("Here."), says("There.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        (phoenix.cwd / "README").write_text("changed\n", "ascii")
        home = phoenix.cwd.parent / FOLDER / phoenix.cwd.name
        async with program(phoenix) as running:
            await running.ready()
            await running.send("/fork --worktree none")
            await running.shows("nothing to fork")
            await running.send("hello here")
            await running.shows("Here.", "○ ready")
            await running.send("/fork --worktree fix")
            await running.until(lambda: (home / "fix" / "README").exists(), "the worktree")
            await running.shows("phoenix/fix", "1 file in", "not committed")
            await running.shows("(2) hello here")  # what is typed before stays in the first one
            await running.send("go on")
            await running.shows("There.")
            assert (home / "fix" / "README").read_text("ascii") == "one\n"
            asked = json.dumps(server.requests[-1].json)
            assert "hello here" in asked
            assert f"Working directory: {home / 'fix'}" in asked
            assert f"The messages before it are about {phoenix.cwd}" in asked
            running.type("\x0c")
            await running.shows("? keys")
            await typing_guard()
            running.type("F")
            await running.until(lambda: (home / "work-1" / "README").exists(), "the second worktree")
            await running.shows("phoenix/work-1")
            await running.shows("Forked. You are in the copy.")
            await typing_guard()
            running.type("N")
            await running.until(lambda: (home / "work-2" / "README").exists(), "the worktree of a new conversation")
            await running.shows("phoenix/work-2")
            wanted = {str(phoenix.cwd), *(str(home / name) for name in ("fix", "work-1", "work-2"))}
            await running.until(lambda: folders(phoenix) == wanted, "the conversations")
