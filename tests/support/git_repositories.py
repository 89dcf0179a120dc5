"""Repositories for tests, made by the real git with an empty configuration of the user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

WHO = ("-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder; its output."""
    mine = {"HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    done = subprocess.run(("git", *WHO, *arguments), cwd=folder, env=mine, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def empty_repository(folder: Path) -> Path:
    """A folder that git takes for a repository without commits, made without git."""
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True, exist_ok=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", "ascii")
    return folder


def commit(folder: Path, name: str, text: str) -> str:
    """Write a file and commit all; the commit's name."""
    (folder / name).write_text(text, "utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", f"change {name}")
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> Path:
    """A repository with two files, one ignored file and one commit on main."""
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text(".env\nbuild/\n", "ascii")
    (folder / "src" / "code.py").write_text("print(1)\n", "ascii")
    commit(folder, "README", "one\n")
    (folder / ".env").write_text("KEY=1\n", "ascii")
    return folder
