"""A conversation in a worktree beside one in the repository: begun, told apart in the list, merged, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import with_claude
from tests.support.git_repositories import commit, git, repository
from tests.support.journeys import says
from tests.support.loopback import serve
from tests.support.program import program
from tests.support.waiting import typing_guard
from tools.git.worktree_names import FOLDER


@pytest.mark.pty
@pytest.mark.parametrize("size", [(80, 24), (160, 40)])
async def test_a_worktree_beside_the_repository(size: tuple[int, int], tmp_path: Path) -> None:
    async with serve(says("Here."), says("There.")) as server:
        phoenix = with_claude(tmp_path, server.url)
        repository(phoenix.cwd)
        tree = phoenix.cwd.parent / FOLDER / phoenix.cwd.name / "fix"
        async with program(phoenix, columns=size[0], rows=size[1]) as running:
            await running.ready()
            await running.send("hello here")
            await running.shows("Here.")
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
