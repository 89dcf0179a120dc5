"""The name of what is checked out, read without git."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.git.repository import branch_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def repository(folder: Path, head: bytes) -> Path:
    (folder / ".git" / "objects").mkdir(parents=True)
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
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert branch_of(tmp_path) == ""
