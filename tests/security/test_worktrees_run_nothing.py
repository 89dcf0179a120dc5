"""SECURITY V2: nothing in a repository decides what runs when Phoenix makes, merges and removes a worktree of it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.security.test_repository_git import HOOKS, as_config, keys
from tests.support.git_repositories import commit, git, repository
from tests.support.plain_runner import PlainRunner
from tools.contract import ProcessRunner
from tools.git.ending import merge_worktree, remove_worktree, standing_of
from tools.git.making import make_worktree
from tools.process.start import ProcessSettings, start_processes


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in the repository's own folder: a sandboxed read of the user's name sees no other folder of a test."""
    folder = tmp_path / "repo" / ".git" / "home"
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(params=["plain", "supervised"])
async def runner(request: pytest.FixtureRequest) -> AsyncIterator[ProcessRunner]:
    if request.param == "plain":
        yield PlainRunner()
        return
    processes = await start_processes(ProcessSettings(environment=dict(os.environ)))
    yield processes.runner
    await processes.close()


def name_user(home: Path) -> None:
    """Tell Git the name of the user, in which a merge is committed."""
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n", "ascii")


def arm(folder: Path, program: Path) -> None:
    """Let every key and hook of git name a program; the files of attributes name drivers of each kind."""
    config = folder / ".git" / "config"
    values = {key: str(program) for key in keys() if not key.startswith(("user.", "core.worktree"))}
    config.write_text(config.read_text("utf-8") + as_config(values), "utf-8")
    for name in HOOKS:
        (folder / ".git" / "hooks" / name).write_text(program.read_text("ascii"), "ascii")
        (folder / ".git" / "hooks" / name).chmod(0o755)
    (folder / ".git" / "info" / "attributes").write_text("* filter=planted diff=planted merge=planted\n", "ascii")


async def test_no_key_hook_or_attribute_runs_anything(tmp_path: Path, home: Path, runner: ProcessRunner) -> None:
    work, program, mark = repository(tmp_path / "repo"), tmp_path / "program", tmp_path / "mark"
    name_user(home)
    program.write_text(f"#!/bin/sh\necho $0 $* >> {mark}\ncat\n", "ascii")
    program.chmod(0o755)
    git(work, "config", "user.name", "Ann")
    git(work, "config", "user.email", "ann@example.org")
    (work / ".worktreeinclude").write_text(".env\n", "ascii")
    commit(work, ".gitattributes", "* filter=planted diff=planted merge=planted text\n")
    clean = (work / ".git" / "config").read_text("utf-8")
    arm(work, program)

    tree = (await make_worktree(runner, work, "fix")).folder
    assert (tree / ".env").exists()
    before, moved = work / ".git" / "config", work / ".git" / "armed"
    before.rename(moved)  # the user's own git, which commits, must not run the program
    before.write_text(clean, "utf-8")
    hooks = (work / ".git" / "hooks").rename(work / ".git" / "armed-hooks")
    commit(tree, "theirs", "1\n")
    commit(work, "mine", "1\n")
    mark.unlink(missing_ok=True)
    moved.rename(before)
    hooks.rename(work / ".git" / "hooks")

    found = await standing_of(runner, tree)
    assert found is not None
    assert (found.ahead, found.behind, found.dirty) == (1, 1, False)
    assert not (await merge_worktree(runner, found)).fast_forward
    assert (work / "theirs").read_text("ascii") == "1\n"
    (tree / "new").write_text("new\n", "ascii")
    (tree / "theirs").write_text("changed\n", "ascii")
    found = await standing_of(runner, tree)
    assert found is not None
    assert (found.changed, found.untracked) == (1, ("new",))
    await remove_worktree(runner, found)
    await make_worktree(runner, work, "fix")
    assert (tree / "new").exists()
    assert not mark.exists(), mark.read_text("utf-8")


async def test_a_program_planted_in_path_is_not_git(
    tmp_path: Path, runner: ProcessRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, mark = repository(tmp_path / "repo"), tmp_path / "mark"
    for name in ("git", "env"):
        (work / name).write_text(f"#!/bin/sh\ntouch {mark}\n", "ascii")
        (work / name).chmod(0o755)
    monkeypatch.setenv("GIT_EXEC_PATH", str(work))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor={work}/git'")
    monkeypatch.chdir(work)
    await make_worktree(runner, work, "fix")
    assert not mark.exists()
