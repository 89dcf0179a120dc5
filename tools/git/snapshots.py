"""Uncommitted changes of a worktree that is removed: a commit under `refs/phoenix/removed`, and the way back."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from tools.files.own_files import read_file, write_file
from tools.git.checkouts import MAKING, home_of
from tools.git.references import read_reference, set_reference
from tools.git.writing import GitWriter

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of an index: some two million files."""
REMOVED: Final = "refs/phoenix/removed/"
WHO: Final = {
    "GIT_AUTHOR_NAME": "Phoenix",
    "GIT_AUTHOR_EMAIL": "phoenix@localhost",
    "GIT_COMMITTER_NAME": "Phoenix",
    "GIT_COMMITTER_EMAIL": "phoenix@localhost",
}
MESSAGE: Final = "Uncommitted changes of a worktree that was removed"


async def keep_changes(writer: GitWriter, name: str, untracked: tuple[str, ...]) -> None:
    """Keep the changes of tracked files and these untracked ones. Raises GitFailure."""
    repository = writer.repository
    index = home_of(repository) / MAKING / f"{name}.index"  # where no command in the worktree can put a link
    write_file(index, read_file(repository.own / "index", LARGEST, follow=False))
    try:
        changed = await writer.run("diff-files", "--name-only", "--ignore-submodules=all", "-z", index=index)
        names = [*filter(None, changed.split("\0")), *untracked]
        listed = b"".join(os.fsencode(each) + b"\0" for each in names)
        await writer.run("update-index", "--add", "--remove", "-z", "--stdin", index=index, stdin=listed)
        tree = await writer.name("write-tree", index=index)
    finally:
        with suppress(OSError):
            index.unlink()
    before = read_reference(repository.common, f"{REMOVED}{name}")
    parents = [word for parent in dict.fromkeys((repository.head, before)) if parent for word in ("-p", parent)]
    commit = await writer.name("commit-tree", *parents, "-m", MESSAGE, tree, environment=WHO)
    set_reference(repository.common, f"{REMOVED}{name}", commit, before)


async def put_back(writer: GitWriter, name: str) -> str:
    """Put kept changes into a worktree that was just checked out; a sentence, empty where there are none."""
    repository = writer.repository
    kept = read_reference(repository.common, f"{REMOVED}{name}")
    if not kept or kept == repository.head:
        return ""
    parent = await writer.attempt("rev-parse", "--verify", "--quiet", f"{kept}^1")
    if os.fsdecode(parent.captured.head).strip() != repository.head:
        return f"Changes that were not committed when it was removed are in {REMOVED}{name}; the branch moved since."
    await writer.run("read-tree", "--reset", "-u", kept)
    await writer.run("read-tree", "--reset", repository.head)
    await writer.attempt("update-index", "-q", "--refresh")
    set_reference(repository.common, f"{REMOVED}{name}", repository.head, kept)
    return "The changes that were not committed when it was removed are back."
