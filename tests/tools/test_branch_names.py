"""The name of what is checked out, read without git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.git_repositories import empty_repository, git
from tools.git.repository import branch_of, has_repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def repository(folder: Path, head: bytes) -> Path:
    empty_repository(folder)
    (folder / ".git" / "HEAD").write_bytes(head)
    (folder / "src").mkdir()
    return folder / "src"


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        (b"ref: refs/heads/main\n", "main"),
        (b"ref: refs/heads/fix/retry\n", "fix/retry"),
        (b"ref: refs/remotes/origin/main\n", "refs/remotes/origin/main"),
        (f"{COMMIT}\n".encode(), "0123456"),
        (b"ref:\n", ""),
        (b"no reference\n", ""),
        (b"\xff\xfe", ""),
    ],
)
def test_the_branch_stands_in_head(tmp_path: Path, head: bytes, branch: str) -> None:
    assert branch_of(repository(tmp_path, head)) == branch


def test_a_working_tree_of_its_own_has_its_own_branch(tmp_path: Path) -> None:
    repository(tmp_path, b"ref: refs/heads/main\n")
    own = tmp_path / ".git" / "worktrees" / "other"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/other\n")
    (own / "commondir").write_text("../..\n")
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / ".git").write_text(f"gitdir: {own}\n")
    assert branch_of(beside) == "other"


def test_outside_a_repository_and_behind_a_pipe_there_is_none(tmp_path: Path) -> None:
    assert branch_of(tmp_path) == ""
    empty_repository(tmp_path)
    (tmp_path / ".git" / "HEAD").unlink()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) == ""


def test_a_git_folder_counts_where_git_itself_takes_it(tmp_path: Path) -> None:
    """Each shape is asked about of git itself, too."""
    pointed = empty_repository(tmp_path / "pointed")
    own = empty_repository(tmp_path / "own") / ".git"
    shapes = {"pointed": True, "own": True}
    for name in ("empty", "no-head", "no-refs", "no-objects", "odd-head", "linked-head"):
        empty_repository(tmp_path / name)
        shapes[name] = name == "linked-head"
    for path in ("empty/.git/HEAD", "no-head/.git/HEAD", "linked-head/.git/HEAD"):
        (tmp_path / path).unlink()
    for path in ("empty/.git/refs", "empty/.git/objects", "no-refs/.git/refs", "no-objects/.git/objects"):
        (tmp_path / path).rmdir()
    (tmp_path / "odd-head" / ".git" / "HEAD").write_text("main\n", "ascii")
    (tmp_path / "linked-head" / ".git" / "HEAD").symlink_to("refs/heads/none-yet")
    pointers = {"file": f"gitdir: {own}", "relative": "gitdir: ../own/.git", "nowhere": "gitdir: ../gone", "words": "x"}
    for name, text in pointers.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").write_text(f"{text}\n", "ascii")
        shapes[name] = name in {"file", "relative"}
    assert {name: has_repository(tmp_path / name) for name in shapes} == shapes
    assert {name: git_takes(tmp_path / name) for name in shapes} == shapes
    assert has_repository(pointed) and not has_repository(tmp_path)


def git_takes(folder: Path) -> bool:
    try:
        return git(folder, "rev-parse", "--show-toplevel") == str(folder)
    except subprocess.CalledProcessError:
        return False
