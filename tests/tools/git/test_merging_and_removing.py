"""The end of a worktree: its branch merged or not, and everything restorable after a removal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repositories import commit, git, repository
from tests.support.plain_runner import PlainRunner
from tools.git.ending import Merged, Standing, merge_worktree, remove_worktree, standing_of, standings
from tools.git.making import make_worktree
from tools.git.repository import FOLDER, GitFailure


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = repository(tmp_path / "repo")
    git(folder, "config", "user.name", "Ann Author")
    git(folder, "config", "user.email", "ann@example.org")
    return folder


@pytest.fixture
async def tree(repo: Path) -> Path:
    return (await make_worktree(PlainRunner(), repo, "fix")).folder


async def now(folder: Path) -> Standing:
    found = await standing_of(PlainRunner(), folder)
    assert found is not None
    return found


async def merged(folder: Path) -> Merged:
    return await merge_worktree(PlainRunner(), await now(folder))


async def merge_refused(folder: Path) -> str:
    with pytest.raises(GitFailure) as failure:
        await merged(folder)
    return str(failure.value)


async def test_the_state_counts_commits_and_files(repo: Path, tree: Path) -> None:
    commit(tree, "a", "1\n")
    commit(tree, "b", "1\n")
    commit(repo, "c", "1\n")
    (tree / "README").write_text("changed\n", "ascii")
    (tree / "new").write_text("new\n", "ascii")
    (tree / ".env").write_text("ignored\n", "ascii")
    found = await now(tree / "src")
    assert (found.ahead, found.behind, found.changed, found.untracked) == (2, 1, 1, ("new",))
    assert (found.base_branch, found.base) == ("main", git(repo, "rev-parse", "main"))
    assert await standing_of(PlainRunner(), repo) is None
    assert [one.ahead for one in await standings(PlainRunner(), repo)] == [2]


async def test_a_branch_that_only_grew_is_a_fast_forward(repo: Path, tree: Path) -> None:
    before = git(repo, "rev-parse", "main")
    tip = commit(tree, "a", "1\n")
    done = await merged(tree)
    assert (done.branch, done.fast_forward, done.folder) == ("main", True, repo)
    assert git(repo, "rev-parse", "main") == tip
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "a").read_text("ascii") == "1\n"
    assert git(repo, "reflog", "-1", "--format=%gs") == "merge phoenix/fix: Fast-forward"
    git(repo, *done.undo.split()[1:])
    assert git(repo, "rev-parse", "main") == before
    assert not (repo / "a").exists()


async def test_branches_that_both_grew_get_a_merge_commit(repo: Path, tree: Path) -> None:
    tip = commit(tree, "a", "1\n")
    mine = commit(repo, "b", "1\n")
    assert not (await merged(tree)).fast_forward
    assert git(repo, "log", "-1", "--format=%P|%an|%ae|%s") == (
        f"{mine} {tip}|Ann Author|ann@example.org|Merge branch 'phoenix/fix' into main"
    )
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""
    assert "nothing to merge" in await merge_refused(tree)


async def test_conflicts_are_named_and_change_nothing(repo: Path, tree: Path) -> None:
    commit(tree, "README", "theirs\n")
    mine = commit(repo, "README", "mine\n")
    assert "conflict in README; merge main into phoenix/fix" in await merge_refused(tree)
    assert git(repo, "rev-parse", "main") == mine
    assert git(repo, "status", "--porcelain") == ""


async def test_a_base_with_uncommitted_changes_stays_as_it_is(repo: Path, tree: Path) -> None:
    commit(tree, "a", "1\n")
    (repo / "README").write_text("changed\n", "ascii")
    assert "has uncommitted changes (README); commit or stash" in await merge_refused(tree)
    git(repo, "add", "README")
    (repo / "README").write_text("one\n", "ascii")
    assert "has uncommitted changes (README)" in await merge_refused(tree)
    git(repo, "reset", "-q", "--hard")
    (repo / "a").write_text("untracked\n", "ascii")
    assert "Git refused" in await merge_refused(tree)
    assert (repo / "a").read_text("ascii") == "untracked\n"
    assert git(repo, "status", "--porcelain") == "?? a"
    assert not list((repo / ".git").rglob("*.lock"))


async def test_an_unfinished_merge_and_a_lock_are_named(repo: Path, tree: Path) -> None:
    commit(tree, "a", "1\n")
    (repo / ".git" / "MERGE_HEAD").write_text("x", "ascii")
    assert "A merge is not finished" in await merge_refused(tree)
    (repo / ".git" / "MERGE_HEAD").unlink()
    lock = repo / ".git" / "refs" / "heads" / "main.lock"
    lock.write_text("", "ascii")
    assert f"if none is, remove {lock}" in await merge_refused(tree)
    assert not (repo / "a").exists()
    lock.unlink()
    assert (await merged(tree)).fast_forward


async def test_without_a_checkout_or_a_branch_as_base_the_way_is_said(repo: Path, tree: Path) -> None:
    commit(tree, "a", "1\n")
    git(repo, "switch", "-qc", "other")
    assert "git switch main" in await merge_refused(tree)
    git(repo, "branch", "-D", "main")
    assert "git merge phoenix/fix" in await merge_refused(tree)


async def test_a_base_branch_that_a_command_wrote_into_the_record_is_checked(repo: Path, tree: Path) -> None:
    commit(tree, "a", "1\n")
    record = repo / ".git" / "worktrees" / "phoenix-fix" / "phoenix.json"
    base = git(repo, "rev-parse", "main")
    for text in ("", "{", '{"base":"x"}', f'{{"base":"{base}","branch":"../../../../etc/passwd"}}', "[]" * 5000):
        record.write_text(text, "ascii")
        assert await standing_of(PlainRunner(), tree) is None


async def test_a_removed_worktree_comes_back_with_all_that_was_not_committed(repo: Path, tree: Path) -> None:
    tip = commit(tree, "a", "1\n")
    (tree / "README").write_text("changed\n", "ascii")
    (tree / "src" / "code.py").unlink()
    (tree / "Übung 1").write_text("new\n", "utf-8")
    (tree / "run").write_text("#!/bin/sh\n", "ascii")
    (tree / "run").chmod(0o755)
    (tree / "link").symlink_to("README")
    state = git(tree, "status", "--porcelain")
    await remove_worktree(PlainRunner(), await now(tree))
    assert not (tree / ".").exists()
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert git(repo, "rev-parse", "phoenix/fix") == tip
    git(repo, "gc", "-q", "--prune=now")
    back = await make_worktree(PlainRunner(), repo, "fix")
    assert back.notes == ("The changes that were not committed when it was removed are back.",)
    assert git(tree, "status", "--porcelain") == state
    assert (tree / "Übung 1").read_text("utf-8") == "new\n"
    assert (tree / "run").stat().st_mode & 0o111
    assert git(tree, "ls-tree", "refs/phoenix/removed/fix^{tree}", "link") == ""
    git(tree, "add", "link")
    assert git(tree, "ls-files", "--stage", "link").startswith("120000 ")
    git(tree, "reset", "-q")
    assert (await now(tree)).base_branch == "main"
    await remove_worktree(PlainRunner(), await now(tree))
    git(repo, "branch", "-f", "phoenix/fix", "main")
    assert "the branch moved since" in (await make_worktree(PlainRunner(), repo, "fix")).notes[0]
    assert git(tree, "status", "--porcelain") == ""


async def test_read_only_folders_and_links_go_and_what_they_name_stays(repo: Path, tree: Path) -> None:
    (repo.parent / "kept").mkdir()
    (repo.parent / "kept" / "file").write_text("x", "ascii")
    (tree / "build" / "cache").mkdir(parents=True)
    (tree / "build" / "cache" / "file").write_text("x", "ascii")
    (tree / "build" / "out").symlink_to(repo.parent / "kept")
    (tree / "build" / "cache").chmod(0o500)
    await remove_worktree(PlainRunner(), await now(tree))
    assert (repo.parent / "kept" / "file").exists()
    assert not list((repo.parent / FOLDER / "repo").glob("[!.]*"))
    assert not list((repo.parent / FOLDER / "repo").glob(".leaving*"))


async def test_commits_on_no_branch_and_on_another_are_not_lost_or_mistaken(repo: Path, tree: Path) -> None:
    git(tree, "switch", "-q", "--detach")
    commit(tree, "a", "1\n")
    with pytest.raises(GitFailure, match="its commits would be lost; run `git switch -c NAME`"):
        await remove_worktree(PlainRunner(), await now(tree))
    assert "run `git switch phoenix/fix` there" in await merge_refused(tree)
    git(tree, "switch", "-qc", "other")
    await remove_worktree(PlainRunner(), await now(tree))
    assert git(repo, "log", "-1", "--format=%s", "other") == "change a"


async def test_links_in_the_git_folder_are_not_written_through(repo: Path, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept", "ascii")
    own = repo / ".git" / "worktrees" / "phoenix-fix"
    (own / "index.removed").symlink_to(tmp_path / "kept")
    (own / "index.lock").symlink_to(tmp_path / "kept")
    (tree / "new").write_text("new", "ascii")
    await remove_worktree(PlainRunner(), await now(tree))
    await make_worktree(PlainRunner(), repo, "fix")
    commit(tree, "a", "1\n")
    (repo / ".git" / "index").rename(tmp_path / "index")
    (repo / ".git" / "index").symlink_to(tmp_path / "index")
    assert "is a link, through which nothing is written" in await merge_refused(tree)
    await remove_worktree(PlainRunner(), await now(tree))
    (repo / ".git" / "worktrees").rename(tmp_path / "worktrees")
    (repo / ".git" / "worktrees").symlink_to(tmp_path / "worktrees")
    with pytest.raises(GitFailure, match="is a link, through which nothing is written"):
        await make_worktree(PlainRunner(), repo, "two")
    assert (tmp_path / "kept").read_text("ascii") == "kept"
    assert not list((tmp_path / "worktrees").iterdir())


async def test_repositories_inside_and_submodules_are_never_deleted(repo: Path, tree: Path) -> None:
    (tree / "inner").mkdir()
    git(tree / "inner", "init", "-q")
    commit(tree / "inner", "work", "1\n")
    with pytest.raises(GitFailure, match="is a repository of its own; move it"):
        await remove_worktree(PlainRunner(), await now(tree))
    assert (tree / "inner" / "work").exists()
    (tree / "inner").rename(repo.parent / "inner")
    git(tree, "submodule", "add", "-q", str(repo.parent / "inner"), "module")
    with pytest.raises(GitFailure, match="has submodules"):
        await remove_worktree(PlainRunner(), await now(tree))
    assert (tree / "module" / "work").exists()


async def test_what_a_crash_left_can_be_removed(repo: Path, tree: Path) -> None:
    (repo / ".git" / "worktrees" / "phoenix-fix" / "locked").write_text("left by a crash", "ascii")
    (tree.parent / "empty").mkdir()
    (tree.parent / "foreign").mkdir()
    (tree.parent / "foreign" / "file").write_text("x", "ascii")
    found = {one.worktree.name: one for one in await standings(PlainRunner(), repo)}
    await remove_worktree(PlainRunner(), found["fix"])
    await remove_worktree(PlainRunner(), found["empty"])
    with pytest.raises(GitFailure, match="was not made by Phoenix"):
        await remove_worktree(PlainRunner(), found["foreign"])
    assert [one.worktree.name for one in await standings(PlainRunner(), repo)] == ["foreign"]
