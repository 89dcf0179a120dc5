"""A worktree that is not needed after all goes without a trace; work in it, and what was there before, stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repositories import commit, git, repository
from tests.support.plain_runner import PlainRunner
from tools.git.ending import remove_worktree, standing_of
from tools.git.making import Made, make_worktree, undo_worktree
from tools.git.repository import GitFailure


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def everything(folder: Path) -> list[str]:
    """Names of all files of a repository and of its worktrees, without locks that stay."""
    home = folder.parent
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if ".making" not in path.parts)


async def make(repo: Path) -> Made:
    return await make_worktree(PlainRunner(), repo, "fix")


async def test_a_new_worktree_goes_with_its_branch(repo: Path) -> None:
    await make_worktree(PlainRunner(), repo, "other")
    before, branches = everything(repo), git(repo, "branch", "--list")
    made = await make(repo)
    await undo_worktree(PlainRunner(), made)
    left = set(everything(repo)) - set(before)
    assert {name for name in left if "logs" not in name and not name.endswith(".removed")} == set()
    assert git(repo, "branch", "--list") == branches
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 2
    assert (await make(repo)).is_new


@pytest.mark.parametrize("work", ["commit", "file"])
async def test_work_in_it_keeps_it(repo: Path, work: str) -> None:
    made = await make(repo)
    if work == "commit":
        commit(made.folder, "new", "1\n")
    else:
        (made.folder / "new").write_text("1\n")
    with pytest.raises(GitFailure, match="has work in it; /worktree remove fix removes it"):
        await undo_worktree(PlainRunner(), made)
    assert (made.folder / "new").exists()


async def test_one_that_is_used_again_stays(repo: Path) -> None:
    await make(repo)
    again = await make(repo)
    assert not again.is_new
    await undo_worktree(PlainRunner(), again)
    assert again.folder.is_dir()


async def test_one_of_an_older_branch_stays(repo: Path) -> None:
    made = await make(repo)
    found = await standing_of(PlainRunner(), made.folder)
    assert found is not None
    await remove_worktree(PlainRunner(), found)
    restored = await make(repo)
    assert not restored.is_new
    await undo_worktree(PlainRunner(), restored)
    assert restored.folder.is_dir()
