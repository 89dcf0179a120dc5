"""Folders that git takes for repositories: git itself is the oracle."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.git.repository import find_repository, git_folder_at

HASH = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def chosen_by_git(folder: Path, ceiling: Path) -> str:
    """The git folder that git itself finds from `folder` up to below `ceiling`; empty for none."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(ceiling), "GIT_CONFIG_NOSYSTEM": "1"}
    words = ("git", "rev-parse", "--absolute-git-dir")
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return os.path.realpath(done.stdout.strip()) if done.returncode == 0 else ""


def bare(folder: Path, head: str = "ref: refs/heads/main\n") -> None:
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text(head, "ascii")


def linked_head(folder: Path) -> None:
    bare(folder)
    (folder / "HEAD").unlink()
    (folder / "HEAD").symlink_to("refs/heads/none")


def odd_link(folder: Path) -> None:
    bare(folder)
    (folder / "HEAD").unlink()
    (folder / "HEAD").symlink_to("elsewhere")


def by_commondir(folder: Path) -> None:
    bare(folder / "away")
    (folder / "HEAD").write_text("ref: refs/heads/x", "ascii")
    (folder / "commondir").write_text("away\n", "ascii")


def by_pointer(folder: Path) -> None:
    bare(folder / "away")
    (folder / ".git").write_text("gitdir: away\n", "ascii")


def by_broken_pointer(folder: Path) -> None:
    bare(folder)
    (folder / ".git").write_text("gitdir: nowhere\n", "ascii")


def by_link(folder: Path) -> None:
    bare(folder / "away")
    (folder / ".git").symlink_to("away")


def behind_an_empty_git(folder: Path) -> None:
    bare(folder)
    (folder / ".git").mkdir()


def without_refs(folder: Path) -> None:
    bare(folder)
    (folder / "refs").rmdir()


def refs_as_a_link(folder: Path) -> None:
    bare(folder)
    (folder / "refs").rmdir()
    (folder / "refs").symlink_to("objects")


SHAPES: list[Callable[[Path], None]] = [
    bare,
    lambda folder: bare(folder / ".git"),
    lambda folder: bare(folder / ".git", HASH),
    lambda folder: bare(folder / ".git", "nonsense"),
    lambda folder: bare(folder / ".git", "ref: heads/x"),
    lambda folder: bare(folder / ".git", "ref:\trefs/heads/x"),
    lambda folder: bare(folder / ".git", HASH[:39]),
    linked_head,
    odd_link,
    by_commondir,
    by_pointer,
    by_broken_pointer,
    by_link,
    behind_an_empty_git,
    without_refs,
    refs_as_a_link,
    lambda folder: (folder / ".git").mkdir(),
]


@pytest.mark.parametrize("make", SHAPES)
def test_the_folder_is_a_repository_where_git_says_so(make: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder)
    found = git_folder_at(folder)
    assert (os.path.realpath(found) if found is not None else "") == chosen_by_git(folder, tmp_path)


def test_git_is_followed_upwards_past_an_empty_folder_of_its_name(tmp_path: Path) -> None:
    bare(tmp_path / "top/.git")
    inner = tmp_path / "top/in/ner"
    inner.mkdir(parents=True)
    (tmp_path / "top/in/.git").mkdir()
    found = find_repository(inner)
    assert found is not None
    assert (found.worktree, found.own) == (tmp_path / "top", tmp_path / "top/.git")
    assert chosen_by_git(inner, tmp_path.parent) == os.path.realpath(tmp_path / "top/.git")
