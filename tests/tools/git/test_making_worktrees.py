"""Worktrees: made, taken up again, undone; commands in them; and nothing left of one that could not be made."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

import pytest

from tests.support.git_repositories import commit, git, repository
from tests.support.plain_runner import PlainRunner
from tools.contract import Command, Finished, Report, Sandbox, SandboxMode
from tools.git.checkouts import LOCK, WorktreeOrigin, repository_of, worktrees
from tools.git.ending import remove_worktree, standing_of, standings
from tools.git.making import Made, make_worktree, undo_worktree
from tools.git.repository import FOLDER, GitFailure
from tools.process.start import ProcessSettings, start_processes


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


class StoppedAtCheckout(PlainRunner):
    """Runs git until it checks out files, and then waits to be cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def run(self, command: Command, report: Report | None = None) -> Finished:
        """Run one command."""
        if "read-tree" in command.argv:
            self.reached.set()
            await asyncio.Event().wait()
        return await super().run(command, report)


async def made(folder: Path, name: str = "fix", base: str = "") -> Path:
    return (await make_worktree(PlainRunner(), folder, name, base)).folder


async def refused(folder: Path, name: str = "fix", base: str = "") -> str:
    with pytest.raises(GitFailure) as failure:
        await make_worktree(PlainRunner(), folder, name, base)
    return str(failure.value)


async def test_a_worktree_lies_beside_its_repository_on_a_branch_of_its_own(repo: Path) -> None:
    folder = await made(repo)
    assert folder == repo.parent / FOLDER / "repo" / "fix"
    assert git(folder, "status", "--porcelain", "--branch") == "## phoenix/fix"
    assert git(folder, "rev-parse", "HEAD") == git(repo, "rev-parse", "main")
    assert (folder / "src" / "code.py").read_text("ascii") == "print(1)\n"
    assert str(folder) in git(repo, "worktree", "list")
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""
    commit(folder, "new", "1\n")
    assert git(repo, "log", "--format=%s", "phoenix/fix", "-1") == "change new"
    assert git(folder, "worktree", "prune", "-v") == ""


async def test_the_working_directory_is_the_same_part_of_the_worktree(repo: Path) -> None:
    (repo / "build").mkdir()
    assert await made(repo / "src") == repo.parent / FOLDER / "repo" / "fix" / "src"
    assert await made(repo / "build", "two") == repo.parent / FOLDER / "repo" / "two"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Über die Brücke", "uber-die-brucke"),
        ("--upload-pack=x", "upload-pack-x"),
        ("../../etc", "etc"),
        ("a b", "a-b"),
    ],
)
async def test_a_name_becomes_a_slug(repo: Path, name: str, slug: str) -> None:
    folder = await made(repo, name)
    assert folder == repo.parent / FOLDER / "repo" / slug
    assert git(folder, "branch", "--show-current") == f"phoenix/{slug}"


@pytest.mark.parametrize("name", ["日本", "merge", "Remove", "list", "..."])
async def test_a_name_without_a_slug_is_refused(repo: Path, name: str) -> None:
    assert "no letters or digits" in await refused(repo, name)


async def test_without_a_name_the_next_free_number_counts(repo: Path) -> None:
    first = await made(repo, "")
    git(repo, "branch", "phoenix/work-2")
    assert (first.name, (await made(repo, "")).name) == ("work-1", "work-3")


async def test_several_at_once_are_several(repo: Path) -> None:
    folders = await asyncio.gather(*(made(repo, f"n{number}") for number in range(5)))
    assert [git(folder, "status", "--porcelain") for folder in folders] == [""] * 5
    assert len({one.own for one in worktrees(repository_of(repo))}) == 5


async def test_two_at_once_get_two_names_or_one_of_them_waits(repo: Path) -> None:
    folders = await asyncio.gather(*(made(repo, "") for _ in range(4)))
    assert {folder.name for folder in folders} == {"work-1", "work-2", "work-3", "work-4"}
    runner = StoppedAtCheckout()
    making = asyncio.create_task(make_worktree(runner, repo, "fix"))
    await runner.reached.wait()
    assert "Another Phoenix is making this worktree" in await refused(repo)
    assert (repo.parent / FOLDER / "repo" / "fix" / ".git").exists()
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert await made(repo) == repo.parent / FOLDER / "repo" / "fix"


async def test_one_that_exists_is_used_again(repo: Path) -> None:
    folder = await made(repo)
    (folder / "README").write_text("mine\n", "ascii")
    again = await make_worktree(PlainRunner(), repo, "fix")
    assert (again.folder, again.notes) == (folder, ("The worktree fix exists and is used again.",))
    assert (folder / "README").read_text("ascii") == "mine\n"
    assert "leave the base out" in await refused(repo, "fix", "main")


async def test_the_base_is_a_branch_a_tag_or_a_commit(repo: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "-a", "v1", "-m", "v1")
    git(repo, "branch", "old")
    commit(repo, "README", "two\n")
    git(repo, "pack-refs", "--all")
    for number, base in enumerate(("v1", "old", first, first[:8])):
        folder = await made(repo, f"n{number}", base)
        assert git(folder, "rev-parse", "HEAD") == first
    origins = [one.origin for one in worktrees(repository_of(repo))]
    assert origins == [
        WorktreeOrigin(first),
        WorktreeOrigin(first, "old"),
        WorktreeOrigin(first),
        WorktreeOrigin(first),
    ]
    for bad in ("nothing", "-x", "--all", "HEAD~1", "../../x", "a" * 40, "main.lock", "v1\nx"):
        assert "There is no branch, tag or commit" in await refused(repo, "bad", bad)
    assert not (repo.parent / FOLDER / "repo" / "bad").exists()


async def test_a_worktree_of_a_detached_head_has_no_base_branch(repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    await made(repo)
    assert worktrees(repository_of(repo))[0].origin == WorktreeOrigin(git(repo, "rev-parse", "HEAD"))


async def test_a_worktree_of_a_worktree_lies_beside_the_repository(repo: Path) -> None:
    first = await made(repo, "one")
    commit(first, "more", "1\n")
    second = await made(first, "two")
    assert second == repo.parent / FOLDER / "repo" / "two"
    assert (second / "more").exists()
    found = await standing_of(PlainRunner(), second)
    assert found is not None
    assert found.base_branch == "phoenix/one"


async def test_no_repository_no_commit_a_bare_one_and_a_submodule_are_refused(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert "is in no git repository" in await refused(tmp_path / "plain")
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    assert "no commits yet" in await refused(tmp_path / "empty")
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    assert "is in no git repository" in await refused(tmp_path / "bare.git")
    git(repo, "submodule", "add", "-q", str(tmp_path / "bare.git"), "module")
    assert "is a submodule" in await refused(repo / "module")


async def test_a_worktree_of_a_bare_repository_can_have_others(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "tree"), "main")
    assert await made(tmp_path / "tree") == tmp_path / FOLDER / "bare.git" / "fix"


async def test_submodules_of_the_repository_are_empty_folders_in_the_worktree(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    git(repo, "submodule", "add", "-q", str(tmp_path / "bare.git"), "module")
    commit(repo, "README", "with a module\n")
    folder = await made(repo)
    assert not list((folder / "module").iterdir())
    assert git(folder, "status", "--porcelain") == ""


async def test_branches_and_files_in_the_way_are_named_and_stay(repo: Path) -> None:
    git(repo, "branch", "phoenix/fix/deeper")
    assert "Branches below phoenix/fix/" in await refused(repo)
    git(repo, "branch", "-D", "phoenix/fix/deeper")
    git(repo, "branch", "phoenix")
    assert "git branch -m phoenix OTHER" in await refused(repo)
    git(repo, "branch", "-D", "phoenix")
    home = repo.parent / FOLDER / "repo"
    (home / "fix").mkdir()
    (home / "fix" / "kept").write_text("x", "ascii")
    assert "is in the way" in await refused(repo)
    (home / "two").write_text("x", "ascii")
    assert "is in the way" in await refused(repo, "two")
    (home / "three").symlink_to(repo / "src")
    assert "is in the way" in await refused(repo, "three")
    assert sorted(path.name for path in home.glob("[!.]*")) == ["fix", "three", "two"]
    assert (home / "fix" / "kept").exists()
    assert git(repo, "branch", "--list", "phoenix/*") == ""
    assert (repo / "src" / "code.py").exists()


async def test_a_branch_that_is_checked_out_elsewhere_is_refused(repo: Path) -> None:
    git(repo, "switch", "-qc", "phoenix/fix")
    assert "is checked out in" in await refused(repo)


async def test_a_link_in_place_of_the_folder_of_worktrees_is_refused(repo: Path) -> None:
    (repo.parent / "elsewhere").mkdir()
    (repo.parent / FOLDER).symlink_to(repo.parent / "elsewhere")
    assert "is no folder of yours" in await refused(repo)
    assert not list((repo.parent / "elsewhere").iterdir())


async def test_a_parent_behind_a_link_is_followed_to_its_place(repo: Path) -> None:
    (repo.parent / "link").symlink_to(repo)
    assert await made(repo.parent / "link" / "src") == repo.parent / FOLDER / "repo" / "fix" / "src"


async def test_a_pointer_to_the_git_folder_of_another_repository_counts_for_nothing(repo: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / ".git").write_text(f"gitdir: {repo}/.git\n", "utf-8")
    assert "start in a repository of its own" in await refused(trap)
    (trap / ".git").unlink()
    (trap / ".git").symlink_to(repo / ".git")
    assert "is elsewhere" in await refused(trap)
    (trap / ".git").unlink()
    git(trap, "init", "-q")
    (trap / ".git" / "commondir").write_text(f"{repo}/.git\n", "utf-8")
    assert "is elsewhere" in await refused(trap)
    assert git(repo, "branch", "--list", "phoenix/*") == ""


async def test_a_link_in_the_way_of_a_branch_is_not_followed(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repo / ".git" / "refs" / "heads" / "phoenix").symlink_to(tmp_path / "elsewhere")
    assert "cannot be written" in await refused(repo)
    assert not list((tmp_path / "elsewhere").iterdir())
    assert await standings(PlainRunner(), repo) == []


async def test_what_a_crash_left_is_listed_and_made_anew(repo: Path) -> None:
    folder = await made(repo)
    own = worktrees(repository_of(repo))[0].own
    assert own is not None
    (own / LOCK).write_text("left by a crash", "ascii")
    (folder / "README").unlink()
    assert [(one.name, one.complete) for one in worktrees(repository_of(repo))] == [("fix", False)]
    with (folder.parent / ".making" / "fix").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "Another Phoenix is making" in await refused(repo)
    assert await made(repo) == folder
    assert (folder / "README").exists()
    assert git(folder, "status", "--porcelain") == ""
    assert worktrees(repository_of(repo))[0].origin == WorktreeOrigin(git(repo, "rev-parse", "main"), "main")


async def test_a_git_folder_that_nothing_names_yet_goes_with_the_next_try(repo: Path) -> None:
    own = repo / ".git" / "worktrees" / "phoenix-fix"
    own.mkdir(parents=True)
    (own / LOCK).write_text("left by a crash", "ascii")
    await made(repo)
    assert [path.name for path in own.parent.iterdir()] == ["phoenix-fix"]


@pytest.mark.parametrize("objects", ["blob", "cancelled"])
async def test_nothing_is_left_of_one_that_fails(repo: Path, objects: str) -> None:
    if objects == "blob":
        name = git(repo, "rev-parse", "HEAD:README")
        (repo / ".git" / "objects" / name[:2] / name[2:]).unlink()
        assert "Git refused" in await refused(repo)
    else:
        runner = StoppedAtCheckout()
        making = asyncio.create_task(make_worktree(runner, repo, "fix"))
        await runner.reached.wait()
        making.cancel()
        with pytest.raises(asyncio.CancelledError):
            await making
    assert not list((repo.parent / FOLDER / "repo").glob("[!.]*"))
    assert git(repo, "branch", "--list", "phoenix/*") == ""
    assert not list((repo / ".git" / "worktrees").iterdir())


async def test_included_files_are_ignored_ones_of_the_repository(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside", "ascii")
    (repo / "build").mkdir()
    (repo / "build" / "tool").write_text("#!/bin/sh\n", "ascii")
    (repo / "build" / "tool").chmod(0o755)
    (repo / "build" / "link").symlink_to(tmp_path / "secret")
    (repo / "build" / "linked").symlink_to(tmp_path)
    (repo / "not-ignored").write_text("x", "ascii")
    (repo / ".worktreeinclude").write_text(".env\nbuild/*\nnot-ignored\n../secret\n/README\n", "ascii")
    git(repo, "add", ".worktreeinclude")
    git(repo, "commit", "-qm", "include")
    made_now = await make_worktree(PlainRunner(), repo, "fix")
    folder = made_now.folder
    assert (folder / ".env").read_text("ascii") == "KEY=1\n"
    assert (folder / "build" / "tool").stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in (folder / "build").iterdir()) == ["tool"]
    assert not (folder / "not-ignored").exists()
    assert made_now.notes[0].startswith("2 ignored files copied by .worktreeinclude. Not copied: build/link and 1 more")


async def test_included_files_end_at_their_bound(repo: Path) -> None:
    (repo / "build").mkdir()
    with (repo / "build" / "large").open("wb") as file:
        file.truncate(100_000_001)
    (repo / ".worktreeinclude").write_text("build/\n.env\n", "ascii")
    notes = (await make_worktree(PlainRunner(), repo, "fix")).notes
    assert notes == (
        "1 ignored file copied by .worktreeinclude. Not copied: build/large "
        "(no regular files, unreadable, or more than 100 MB together).",
    )


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


async def test_a_command_in_the_sandbox_commits_on_the_branch_of_the_worktree(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    tree = (await make_worktree(PlainRunner(), repo, "fix")).folder
    processes = await start_processes(ProcessSettings(environment=dict(os.environ)))
    try:
        if not (await processes.probe()).sandbox:
            pytest.skip("no sandbox here")
        line = (
            "echo 1 > new && git add new && git -c user.name=n -c user.email=e commit -qm sandboxed; "
            f"echo x > {repo}/README; echo x > {tree.parent}/beside; git config user.name evil; true"
        )
        limits = Sandbox(SandboxMode.WORKSPACE, network=False)
        ended = await processes.runner.run(Command(("/bin/sh", "-c", line), tree, 30.0, sandbox=limits))
    finally:
        await processes.close()
    assert git(tree, "log", "-1", "--format=%s") == "sandboxed", ended.captured.head
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "README").read_text("ascii") == "one\n"
    assert not (tree.parent / "beside").exists()
    assert "evil" not in (repo / ".git" / "config").read_text("utf-8")
    found = await standing_of(PlainRunner(), tree)
    assert found is not None
    assert (found.ahead, found.dirty) == (1, False)
